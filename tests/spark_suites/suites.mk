# Spark's own suites with the plugin on. PLUGIN_JAR (the assembled plugin for Spark 4.2) comes from the including Makefile.
SPARK_SUITES := python3 tests/spark_suites/run.py --plugin-jar $(PLUGIN_JAR) $(ARGS)

.PHONY: spark-suites spark-suites-ci
spark-suites: $(PLUGIN_JAR) ## All of Spark's streaming and state suites (hours on two cores)
	$(SPARK_SUITES) --part all

spark-suites-ci: $(PLUGIN_JAR) ## The part that CI runs (about 10 minutes on two cores)
	$(SPARK_SUITES) --part ci
