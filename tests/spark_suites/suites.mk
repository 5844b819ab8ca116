# Runs Spark's own suites with the plugin on. The including Makefile sets PLUGIN_JAR, the plugin jar for Spark 4.2.
SPARK_SUITES := python3 tests/spark_suites/run.py --plugin-jar $(PLUGIN_JAR) $(ARGS)

.PHONY: spark-suites spark-suites-ci
spark-suites: $(PLUGIN_JAR) ## runs all of Spark's streaming and state suites: hours on two cores
	$(SPARK_SUITES) --part all

spark-suites-ci: $(PLUGIN_JAR) ## runs the part of Spark's suites that CI runs: less than 10 minutes on two cores
	$(SPARK_SUITES) --part ci
