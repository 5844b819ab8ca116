"""The wheel and the jar, installed and used as described in the README."""

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

# Counts keys over two batches, checks the counts, and prints the state store provider.
QUERY = """
import glob, json
source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).option("numPartitions", 2).load()
query = (
    source.selectExpr("value % 10 AS key").groupBy("key").count().writeStream.outputMode("complete")
    .option("checkpointLocation", "checkpoint").format("memory").queryName("counts").start()
)
while query.lastProgress is None or query.lastProgress["batchId"] < 2:
    if query.exception() is not None:
        raise query.exception()
query.stop()
rows = sorted((r["key"], r["count"]) for r in spark.table("counts").collect())
assert [k for k, _ in rows] == list(range(10)), rows
assert len({c for _, c in rows}) == 1 and rows[0][1] % 100 == 0 and rows[0][1] >= 300, rows
offsets = open(sorted(glob.glob("checkpoint/offsets/[0-9]*"))[0]).read()
print("PROVIDER", json.loads(offsets.splitlines()[1])["conf"]["spark.sql.streaming.stateStore.providerClass"])
print("SHARDS", json.loads(offsets.splitlines()[1])["conf"]["spark.sql.shuffle.partitions"])
spark.stop()
"""


def script(folder: Path, *lines: str) -> Path:
    path = folder / "script.py"
    path.write_text("\n".join(lines) + "\n" + QUERY)
    return path


def assert_penstock_ran(completed: subprocess.CompletedProcess[str]) -> None:
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "PROVIDER io.penstock.PenstockStateStoreProvider" in completed.stdout
    assert "SHARDS 256" in completed.stdout


def test_the_wheel_has_the_package_the_bridge_and_the_jars(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    folders = {n.split("/")[0] for n in names}
    info = next(f for f in folders if f.endswith(".dist-info"))
    assert folders == {"penstock", "pyspark", info}
    assert [n for n in names if n.startswith("pyspark/")] == [n for n in names if "penstock-bridge-" in n]
    assert any(n.startswith("penstock/jars/penstock-spark-") for n in names)
    assert "penstock/_configuration.json" in names


def test_jars_have_only_our_own_packages(wheel):
    """The jars have only our own packages, because a jar on Spark's class path must not shadow other classes."""
    archive = zipfile.ZipFile(wheel)
    for name in archive.namelist():
        if name.endswith(".jar"):
            with archive.open(name) as data:
                entries = [e for e in zipfile.ZipFile(data).namelist() if not e.endswith("/")]
            spark = ("org/apache/spark/sql/penstock/", "org/apache/spark/scheduler/penstock/")
            service = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
            own = (
                "io/penstock/",
                *(f"absent/{package}" for package in ("io/penstock/", *spark)),
                *spark,
                "META-INF/MANIFEST.MF",
                service,
            )
            assert [e for e in entries if not e.startswith(own)] == [], name


def test_the_setting_spark_plugins_is_enough(installation, tmp_path):
    """Three lines of PySpark are enough after `pip install`, without the path of any jar."""
    path = script(
        tmp_path,
        "from pyspark.sql import SparkSession",
        'builder = SparkSession.builder.master("local[2]").config("spark.plugins", "io.penstock.PenstockPlugin")',
        "spark = builder.getOrCreate()",
    )
    assert_penstock_ran(installation.run("python", path, cwd=tmp_path))


PLAIN = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1000).option("numPartitions", 2).load()
query = (
    rows.selectExpr("value % 10 AS key").groupBy("key").count().writeStream.outputMode("complete")
    .option("checkpointLocation", "checkpoint").format("memory").queryName("counts").start()
)
state = spark.read.format("statestore").load("checkpoint")
for what, run in {"QUERY": query.awaitTermination, "READ": state.count}.items():
    try:
        run()
    except Exception as error:
        print(what, str(error).replace(chr(10), " ")[:3000])
import penstock
print("STATUS", penstock.status(query)["reason"])
ours = spark.range(5).count()
print("RANGE", ours)
spark.stop()
"""


def test_plain_spark_reports_what_a_penstock_checkpoint_needs(installation, tmp_path):
    """If the wheel is installed but the plugin is not enabled, the error is not a missing class but says what to do."""
    path = script(
        tmp_path,
        "import penstock",
        "from pyspark.sql import SparkSession",
        'spark = penstock.configure(SparkSession.builder.master("local[2]")).getOrCreate()',
    )
    assert_penstock_ran(installation.run("python", path, cwd=tmp_path))
    plain = tmp_path / "plain.py"
    plain.write_text(PLAIN)
    completed = installation.run("python", plain, cwd=tmp_path)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    printed = dict(line.split(" ", 1) for line in completed.stdout.splitlines() if line.split(" ", 1)[0].isupper())
    for call in ("QUERY", "READ"):
        assert "[PENSTOCK_NOT_ENABLED] This checkpoint was written by Penstock" in printed[call]
        assert "--conf spark.plugins=io.penstock.PenstockPlugin" in printed[call]
    assert "Penstock is not enabled in this application" in printed["STATUS"]
    assert printed["RANGE"] == "5"


def test_configure_enables_penstock(installation, tmp_path):
    path = script(
        tmp_path,
        "import penstock",
        "from pyspark.sql import SparkSession",
        'spark = penstock.configure(SparkSession.builder.master("local[2]")).getOrCreate()',
    )
    assert_penstock_ran(installation.run("python", path, cwd=tmp_path))


@pytest.fixture
def jar(installation, spark_version) -> Path:
    printed = installation.run("penstock", "jar", "--spark", spark_version, cwd=installation.folder)
    assert printed.returncode == 0, printed.stderr
    return Path(printed.stdout.strip())


@pytest.fixture
def without_bridge(installation):
    """Yield the same installation with PySpark's own jars only, as on a cluster without the wheel."""
    bridge = next(installation.site.glob("pyspark/jars/penstock-bridge-*.jar"))
    aside = bridge.with_suffix(".aside")
    bridge.rename(aside)
    yield installation
    aside.rename(bridge)


MASTERS = ["local[2]", "local-cluster[2,1,1024]"]


@pytest.mark.parametrize("master", MASTERS)
def test_spark_submit_works_with_jars(without_bridge, jar, tmp_path, master):
    """`--jars` is enough without the bridge of the wheel, also for executors, which get the jar from the driver."""
    path = script(tmp_path, "from pyspark.sql import SparkSession", "spark = SparkSession.builder.getOrCreate()")
    options = ["--master", master, "--conf", "spark.plugins=io.penstock.PenstockPlugin", "--jars", jar]
    assert_penstock_ran(without_bridge.run("spark-submit", *options, path, cwd=tmp_path))


def test_executors_without_the_jar_get_it_from_the_driver(without_bridge, jar, tmp_path):
    """Only the class path of the driver has the plugin."""
    path = script(tmp_path, "from pyspark.sql import SparkSession", "spark = SparkSession.builder.getOrCreate()")
    options = ["--master", MASTERS[1], "--conf", "spark.plugins=io.penstock.PenstockPlugin", "--driver-class-path", jar]
    assert_penstock_ran(without_bridge.run("spark-submit", *options, path, cwd=tmp_path))


def test_configure_under_spark_submit_without_the_jar_says_what_to_do(without_bridge, tmp_path):
    path = script(
        tmp_path,
        "import penstock",
        "from pyspark.sql import SparkSession",
        "spark = penstock.configure(SparkSession.builder).getOrCreate()",
    )
    completed = without_bridge.run("spark-submit", "--master", "local[1]", path, cwd=tmp_path)
    assert completed.returncode != 0
    # spark-submit may pass the output of the script to either stream.
    output = completed.stdout + completed.stderr
    assert "[PENSTOCK_CLASS_PATH]" in output
    assert "--jars" in output


def test_the_plugin_without_its_jar_is_an_error(installation, tmp_path):
    """An installation without its jars fails at start and names the folder that was searched."""
    jars = installation.site / "penstock" / "jars"
    aside = jars.with_suffix(".aside")
    jars.rename(aside)
    try:
        path = script(tmp_path, "from pyspark.sql import SparkSession", "spark = SparkSession.builder.getOrCreate()")
        options = ["--master", "local[1]", "--conf", "spark.plugins=io.penstock.PenstockPlugin"]
        completed = installation.run("spark-submit", *options, path, cwd=tmp_path)
    finally:
        aside.rename(jars)
    assert completed.returncode != 0
    assert "[PENSTOCK_JAR_NOT_FOUND]" in completed.stdout + completed.stderr
    assert str(jars) in completed.stdout + completed.stderr


def test_the_command_line_works_without_pyspark(wheel, tmp_path, installation):
    """Commands that do not need PySpark work without it."""
    code = "import sys; sys.modules['pyspark'] = None; from penstock.cli import main; sys.exit(main(sys.argv[1:]))"
    listed = installation.run("python", "-c", code, "config", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert "spark.penstock.shards" in listed.stdout


def test_settings_of_the_wheel_are_known_to_the_jar(installation, jar, tmp_path):
    """The list in the wheel is generated from the registry in the jar, so the jar knows all its keys."""
    keys = json.loads((installation.site / "penstock" / "_configuration.json").read_text())["settings"]
    classes = b"".join(
        zipfile.ZipFile(jar).read(n) for n in zipfile.ZipFile(jar).namelist() if "penstock/conf/Settings" in n
    )
    assert [k["key"] for k in keys if k["key"].removeprefix("spark.penstock.").encode() not in classes] == []
