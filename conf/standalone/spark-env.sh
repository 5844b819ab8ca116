# Sourced by Spark's scripts on master, workers and driver: copy to $SPARK_HOME/conf, with spark-defaults.conf.

# Python with PySpark and penstock, at the same path on every machine.
export PYSPARK_PYTHON=${PYSPARK_PYTHON:-/opt/penstock/bin/python}

# Shuffle files: a local disk, not one that others share.
export SPARK_LOCAL_DIRS=${SPARK_LOCAL_DIRS:-/var/tmp/spark}
export SPARK_WORKER_DIR=${SPARK_WORKER_DIR:-$SPARK_LOCAL_DIRS/work}

# Spark starts a server on port 6066 that runs the applications of anybody, also with spark.authenticate.
export SPARK_MASTER_OPTS="-Dspark.master.rest.enabled=false ${SPARK_MASTER_OPTS:-}"

# Folders of applications that have ended, checkpoints are not among them.
export SPARK_WORKER_OPTS="-Dspark.worker.cleanup.enabled=true ${SPARK_WORKER_OPTS:-}"
