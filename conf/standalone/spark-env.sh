# Spark's scripts source this file on master, workers and driver. Copy it to $SPARK_HOME/conf, with spark-defaults.conf.

# A Python with PySpark and penstock, at the same path on every machine.
export PYSPARK_PYTHON=${PYSPARK_PYTHON:-/opt/penstock/bin/python}

# Folder for shuffle files. It must be on a local disk, not on a shared one.
export SPARK_LOCAL_DIRS=${SPARK_LOCAL_DIRS:-/var/tmp/spark}
export SPARK_WORKER_DIR=${SPARK_WORKER_DIR:-$SPARK_LOCAL_DIRS/work}

# Spark starts a server on port 6066 that runs applications for anybody, even with spark.authenticate.
export SPARK_MASTER_OPTS="-Dspark.master.rest.enabled=false ${SPARK_MASTER_OPTS:-}"

# Removes folders of applications that have ended. Checkpoints are not in these folders.
export SPARK_WORKER_OPTS="-Dspark.worker.cleanup.enabled=true ${SPARK_WORKER_OPTS:-}"
