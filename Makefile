# Penstock. `make demo` shows what it does, and `make test` runs every test. Both set up everything that they need.
# SPARK=4.3 selects Spark 4.3 (default: 4.2). BRIEF=1 skips tests that take minutes and hardly depend on the version of
# Spark. Continuous integration uses it for Spark 4.3 and for the cluster; `make nightly` runs everything on both.

SPARK ?= 4.2
SPARK_VERSION_4.2 := 4.2.0
SPARK_VERSION_4.3 := 4.3.0
SPARK_VERSION := $(SPARK_VERSION_$(SPARK))
ifeq ($(SPARK_VERSION),)
$(error SPARK=$(SPARK) is not supported; allowed: 4.2, 4.3)
endif

VENV := $(if $(filter 4.2,$(SPARK)),.venv,.venv-$(SPARK))
PYTHON := $(VENV)/bin/python
VERSION := $(shell cat VERSION)
JAR := python/penstock/jars/penstock-spark-$(SPARK)_2.13-$(VERSION).jar
BRIDGE := python/penstock/jars/penstock-bridge-$(VERSION).jar
# The jar that tests/spark_suites/suites.mk tests. Spark publishes its tests for 4.2.0 only.
PLUGIN_JAR := python/penstock/jars/penstock-spark-4.2_2.13-$(VERSION).jar
REPORTS := .work/reports/spark-$(SPARK)

# Spark 4.2.0 comes from Maven Central. Spark 4.3.0 is not there, so its jars come from the PySpark distribution.
SBT = dev/sbt -Dspark=$(SPARK) -Dpenstock.test.cli=$(CURDIR)/$(VENV)/bin/penstock $(if $(BRIEF),-Dpenstock.test.brief=true) \
	$(if $(filter 4.2,$(SPARK)),,-Dspark.jars.dir=$(SPARK_JARS))
# Evaluated by the shell, because make caches the content of a folder from before a recipe filled it.
SPARK_JARS = $$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages/pyspark/jars)
PYTEST = $(PYTHON) -m pytest --junitxml=$(REPORTS)

# For applications that run for seconds, or on little data: full compilation would cost more than it saves.
SHORT_LIVED = JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1

SCALA_SOURCES := $(shell find jvm plugin -name target -prune -o -path '*/src/main/*' -type f -print -o -path '*/shims/*' -type f -print)

.DEFAULT_GOAL := help
# Only one sbt, and one Spark, may run at a time. Two targets run side by side only if one of them runs neither.
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
side_by_side = $(MAKE) --no-print-directory -j2 --output-sync=target SIDE_BY_SIDE=1 $(1)
.PHONY: help setup prerequisites jar demo kafka-jars chaos noise soak test test-with-sbt test-without-sbt test-scala test-integration test-python test-packaging test-vm test-cluster test-unit test-unit-python check check-scala check-python lint format nightly \
	wheel docs bench clean

help: ## lists the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

prerequisites:
	@dev/prerequisites.sh

setup: prerequisites $(VENV)/installed-requirements.txt jar ## creates .venv with all packages, and builds the jar

$(VENV)/installed-requirements.txt: dev/requirements.txt setup.py pyproject.toml dev/venv.sh | prerequisites
	dev/venv.sh $(VENV) $(SPARK_VERSION)

jar: $(JAR) $(BRIDGE)

$(JAR) $(BRIDGE) &: $(SCALA_SOURCES) build.sbt VERSION $(wildcard project/*.sbt project/*.properties) \
		| $(VENV)/installed-requirements.txt
	$(SBT) plugin/assembly bridge/package
	mkdir -p python/penstock/jars
	rm -f python/penstock/jars/penstock-spark-$(SPARK)_*.jar python/penstock/jars/penstock-bridge-*.jar
	cp plugin/target/spark-$(SPARK)/scala-2.13/$(notdir $(JAR)) $(JAR)
	cp plugin/bridge/target/spark-$(SPARK)/scala-2.13/$(notdir $(BRIDGE)) $(BRIDGE)

demo: setup $(if $(findstring --kafka,$(ARGS)),kafka-jars) ## runs plain Spark and Penstock on real flights: which departures wait for a late inbound flight?
	mkdir -p .work
	$(VENV)/bin/penstock demo --html .work/demo.html --png .work/demo.png $(ARGS)

# Spark's connector for Kafka is published for 4.2 only.
kafka-jars: .work/kafka/connector ## fetches a Kafka broker and Spark's connector, for make demo ARGS=--kafka

.work/kafka/connector: build.sbt | setup
	dev/sbt -Dspark=4.2 integration/kafkaJars
	touch $@

test: test-with-sbt test-without-sbt ## runs every test but Spark's own suites

test-with-sbt: lint test-unit test-integration

# Needs a jar, and the jars of Kafka, that sbt has built.
test-without-sbt: test-python test-packaging

test-unit: setup ## runs the unit tests of both languages side by side
	$(call side_by_side,test-scala test-unit-python)

test-scala: setup ## runs the unit tests of the JVM side
	$(SBT) jvm/test bridge/test plugin/test

test-unit-python: setup ## runs the unit tests of the Python side
	$(PYTEST)/unit.xml tests/python/unit

test-integration: setup ## runs the operator matrix and other tests against plain Spark
	$(SBT) integration/test

test-python: setup $(if $(filter 4.2,$(SPARK)),kafka-jars) ## runs PySpark's operators, and other tests of Python with Spark
	$(SHORT_LIVED) $(PYTEST)/python.xml tests/python/operators tests/spark_suites

test-packaging: setup wheel ## tests the wheel and the jar as a user installs them
	$(SHORT_LIVED) PENSTOCK_WHEEL=$$(echo $(CURDIR)/dist/penstock-$(VERSION)-*.whl) \
	PENSTOCK_SPARK=$(SPARK_VERSION) $(PYTEST)/packaging.xml tests/packaging

test-vm: setup ## tests RDMA verbs between sidecars, on Soft-RoCE in a virtual machine: a few minutes
	tests/vm/run.sh $(PYTHON) $(ARGS)

test-cluster: setup ## tests a standalone cluster in network namespaces, kills executors and sidecars, cuts links; needs root
	$(if $(BRIEF),PENSTOCK_TEST_BRIEF=1 $(SHORT_LIVED)) $(PYTEST)/cluster.xml tests/cluster

check: lint ## runs lint and the unit tests that are not slow: less than five minutes
	$(call side_by_side,check-scala check-python)

check-scala: setup
	$(SBT) "jvm/testOnly * -- -l org.scalatest.tags.Slow"

check-python: setup
	$(PYTEST)/check.xml -m "not slow" tests/python/unit

lint: setup ## checks formatting, style and types; compiles with fatal warnings
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy
	$(PYTHON) -m mypy benchmarks/python
	$(VENV)/bin/lint-imports --no-cache
	$(SBT) scalafmtCheckAll scalafmtSbtCheck Test/compile

format: setup ## formats all sources
	$(PYTHON) -m ruff format
	$(PYTHON) -m ruff check --fix
	$(SBT) scalafmtAll scalafmtSbt

wheel: setup ## builds the wheel, with the jar of every Spark that was built, and the checksums of both
	rm -rf build dist
	mkdir -p .work
	$(PYTHON) -m pip --disable-pip-version-check --quiet wheel --no-deps --no-build-isolation --wheel-dir dist .
	(cd dist && sha256sum penstock-*.whl && cd ../python/penstock/jars && sha256sum *.jar) >.work/SHA256SUMS
	mv .work/SHA256SUMS dist/
	@ls dist

docs: setup ## generates the files that come from the JVM's registries, as of settings and metrics
	$(SBT) "jvm/Test/runMain io.penstock.conf.ConfigurationFiles ."

RUNS ?= 200
SEED ?= 1
SCENARIO ?=

chaos: setup ## compares random queries under random kills with plain Spark: make chaos RUNS=200 SEED=1
	$(SBT) "integration/Test/runMain org.apache.spark.sql.penstock.integration.chaos.Chaos \
		$(or $(SCENARIO),$(RUNS) $(SEED))"

noise: setup ## checks on a busy machine that noise moves nothing and an expensive key is found: make noise RUNS=200 SEED=1
	$(SBT) "integration/Test/runMain org.apache.spark.sql.penstock.integration.noise.Noise $(RUNS) $(SEED)"

SOAK_SECONDS ?= 1800
soak = $(SBT) 'set integration / Test / javaOptions ++= Seq("-Xmx$(1)")' \
	"integration/Test/runMain org.apache.spark.sql.penstock.integration.soak.Soak $(SOAK_SECONDS) $(2) $(3)"

soak: setup ## runs half an hour each with a small state, a state of 2 GB, and large shards with slow snapshots: resources must not grow
	$(call soak,2g,100000,50)
	$(call soak,8g,18000000,50)
	$(call soak,2g,200000,50 slow-snapshots)

NIGHT ?= $(shell date -u +%Y%m%d)

nightly: ## runs every test on both Spark versions, 1,000 chaos runs on each, the soak, the demonstration, all of Spark's suites: a night and more
	PENSTOCK_NIGHT=1 $(MAKE) test
	PENSTOCK_NIGHT=1 $(MAKE) test SPARK=4.3
	$(MAKE) test-cluster
	$(MAKE) test-vm
	$(MAKE) chaos RUNS=1000 SEED=$(NIGHT)
	$(MAKE) chaos RUNS=1000 SEED=$(NIGHT) SPARK=4.3
	$(MAKE) noise RUNS=200 SEED=$(NIGHT)
	PENSTOCK_FUZZ_INPUTS=100000 PENSTOCK_FUZZ_SEED=$(NIGHT) $(PYTEST)/fuzz.xml tests/python/unit/test_hostile_bytes.py
	$(SBT) -Dpenstock.test.runs=200 "jvm/testOnly *.BusyMachineSuite"
	$(SBT) -Dpenstock.test.seeds=50 "integration/testOnly *.HandOverSuite"
	$(SBT) -Dpenstock.test.inputs=100000 -Dpenstock.test.seed=$(NIGHT) "integration/testOnly *.StatusAccessSuite"
	$(MAKE) soak
	$(MAKE) demo
	$(MAKE) demo ARGS="--data nasa --kafka"
	$(MAKE) spark-suites
	for bench in ring sidecar; do $(VENV)/bin/penstock bench $$bench --rounds 1 --warm-up 1 || exit 1; done
	$(VENV)/bin/penstock bench --stale

bench: setup ## runs a benchmark: make bench ARGS="overhead --json FILE"
	$(VENV)/bin/penstock bench $(ARGS)

clean: ## removes built files; keeps virtual environments
	rm -rf build dist .work python/penstock/jars python/*.egg-info
	find . -name target -type d -not -path './.venv*' -prune -exec rm -rf {} +

include tests/spark_suites/suites.mk
