"""The files in `conf/` are checked against the schemas of the systems that read them, and started where possible."""

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from databricks.sdk.service.compute import ClusterSpec
from eventually import eventually

ROOT = Path(__file__).parents[2]
CONF = ROOT / "conf"
PATIENCE_S = 120
WAITING = str(ROOT / "tests/waiting")
"""Folder of a module that the application `deployed.py` imports."""


def settings():
    return {
        entry["key"] for entry in json.loads((ROOT / "python/penstock/_configuration.json").read_text())["settings"]
    }


def properties(path):
    lines = [line.strip() for line in path.read_text().splitlines()]
    # Settings that are commented out count as well.
    pairs = [line.removeprefix("#").split(None, 1) for line in lines if line.removeprefix("#").startswith("spark.")]
    return dict(pairs)


def read_result(folder, output):
    file = folder / "deployed.json"
    assert file.exists(), output[-3000:]
    return json.loads(file.read_text())


def test_every_penstock_setting_in_conf_exists():
    files = [*CONF.glob("**/*.conf"), CONF / "databricks/cluster.json"]
    assert len(files) == 3
    known = settings()
    for path in files:
        found = json.loads(path.read_text())["spark_conf"] if path.suffix == ".json" else properties(path)
        ours = {key for key in found if key.startswith("spark.penstock.")}
        assert ours
        assert ours <= known, path
        assert found["spark.plugins"] == "io.penstock.PenstockPlugin"


def test_the_executor_pod_template_is_valid_for_kubernetes():
    pod = yaml.safe_load((CONF / "kubernetes/executor-pod-template.yaml").read_text())
    # Spark sets the image.
    pod["metadata"]["name"] = "executor"
    pod["spec"]["containers"][0]["image"] = "spark"
    kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)
    security = pod["spec"]["containers"][0]["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    pod["spec"]["volumes"][0]["emptyDir"]["sizelimit"] = "1Gi"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod, kubernetes_validate.latest_version(), strict=True)


def test_the_cluster_definition_is_valid_for_databricks():
    """Every field of the file is a field of the SDK, with its type. The SDK drops unknown fields."""
    cluster = json.loads((CONF / "databricks/cluster.json").read_text())
    assert ClusterSpec.from_dict(cluster).as_dict() == cluster
    assert "unknown" not in ClusterSpec.from_dict(cluster | {"unknown": 1}).as_dict()


def test_the_init_script_installs_the_files_beside_it(installation, wheel, tmp_path):
    files, jars = tmp_path / "files", tmp_path / "jars"
    files.mkdir()
    jars.mkdir()
    environment = {
        "PENSTOCK_FILES": str(files),
        "PENSTOCK_JARS": str(jars),
        "PENSTOCK_PYTHON": str(installation.python),
        "PATH": os.environ["PATH"],
    }

    def run():
        script = CONF / "databricks/init.sh"
        return subprocess.run(["bash", script], env=environment, capture_output=True, text=True, check=False)  # noqa: S607

    def refused(why):
        completed = run()
        assert completed.returncode == 1
        assert why in completed.stderr
        assert not list(jars.iterdir())

    refused(f"one wheel is expected in {files}")
    shutil.copy(wheel, files)
    refused(f"one jar is expected in {files}")
    jar = next((installation.site / "penstock/jars").glob("penstock-spark-4.2*.jar"))
    shutil.copy(jar, files)
    refused(f"{wheel.name} is not the one that {files}/SHA256SUMS names")
    shutil.copy(wheel.with_name("SHA256SUMS"), files)
    shutil.copy(CONF / "databricks/requirements.txt", files)
    with (files / jar.name).open("ab") as cut:
        cut.write(b"?")
    refused(f"{jar.name} is not the one that {files}/SHA256SUMS names")
    shutil.copy(jar, files)
    done = run()
    assert done.returncode == 0, done.stderr
    assert [path.name for path in jars.iterdir()] == [jar.name]
    assert installation.run("penstock", "--help", cwd=tmp_path).returncode == 0


@pytest.fixture
def standalone(installation, tmp_path):
    """Start a master and two workers with the files of `conf/`. Yield the URL and environment for `spark-submit`."""
    conf = tmp_path / "conf"
    conf.mkdir()
    shutil.copy(CONF / "spark-defaults.conf", conf)
    shutil.copy(CONF / "standalone/spark-env.sh", conf)
    environment = {
        "SPARK_CONF_DIR": str(conf),
        "SPARK_HOME": str(installation.site / "pyspark"),
        "PYSPARK_PYTHON": str(installation.python),
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"spark://127.0.0.1:{free.getsockname()[1]}"
    processes = []

    def start(name, awaited, program, *words):
        log = tmp_path / f"{name}.log"
        with log.open("wb") as output:
            processes.append(
                subprocess.Popen(
                    [installation.site / "pyspark/bin/spark-class", f"org.apache.spark.deploy.{program}", *words],
                    env=os.environ | environment | {"SPARK_LOCAL_IP": "127.0.0.1"},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            )
        eventually(
            lambda: awaited in log.read_text(errors="replace"),
            timeout_s=PATIENCE_S,
            what=lambda: f"{name} starts: {log.read_text(errors='replace')[-3000:]}",
        )

    common = ("--host", "127.0.0.1", "--webui-port", "0")
    try:
        start("master", "I have been elected leader", "master.Master", *common, "--port", url.rpartition(":")[2])
        for number in range(2):
            worker = ("worker.Worker", *common, "--cores", "2", "--memory", "2g", url)
            start(f"worker-{number}", "Successfully registered with master", *worker)
        yield url, environment
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(PATIENCE_S)


def test_shards_travel_on_a_standalone_cluster_with_two_workers(standalone, installation, tmp_path):
    url, environment = standalone
    application = Path(__file__).parent / "deployed.py"
    memory = ("--conf", "spark.executor.memory=600m", "--conf", "spark.ui.enabled=false")
    environment["PYTHONPATH"] = WAITING
    completed = installation.run(
        "spark-submit", "--master", url, *memory, application, tmp_path, "2", cwd=tmp_path, **environment
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    found = read_result(tmp_path, completed.stdout)
    assert found.pop("travelled") > 0, completed.stderr[-3000:]
    assert found == {
        "provider": "io.penstock.PenstockStateStoreProvider",
        "executors": 2,
        "sidecars": 2,
        "keys": 100,
        "rest": False,
        "even": True,
    }


def test_a_query_runs_in_a_slurm_allocation_that_keeps_its_secret(slurm, installation, tmp_path):
    application = Path(__file__).parent / "deployed.py"
    output = slurm.run(
        CONF / "slurm/penstock.sbatch",
        application,
        tmp_path,
        "1",
        options=["--cpus-per-task=2"],
        PYTHONPATH=WAITING,
        PENSTOCK_VENV=str(installation.folder),
        PENSTOCK_EXECUTOR_MEMORY="600m",
        PENSTOCK_LOCAL_DIR=str(tmp_path),
    )
    found = read_result(tmp_path, output)
    assert (found["executors"], found["sidecars"], found["keys"], found["even"]) == (1, 1, 100, True)
    assert not found["rest"]
    assert not list(tmp_path.glob("spark-*")), "the job left local folders behind"
    private = found["private"]
    assert private["secrets"] == 1
    assert private["shown"] == 0
    assert set(private["modes"].values()) == {"0o700", "0o600"}
    assert {name for name, mode in private["modes"].items() if mode == "0o600"} == {"application.conf", "cluster.conf"}


def test_a_slurm_job_ends_if_its_port_or_folder_is_taken(slurm, installation, tmp_path):
    def run(**environment):
        return slurm.run(
            CONF / "slurm/penstock.sbatch",
            "no-application.py",
            options=["--cpus-per-task=1"],
            PENSTOCK_VENV=str(installation.folder),
            PENSTOCK_LOCAL_DIR=str(tmp_path),
            **environment,
        )

    with socket.create_server(("0.0.0.0", 0)) as somebody:  # noqa: S104 - the port of the master
        port = str(somebody.getsockname()[1])
        assert f"no master at port {port} of" in run(PENSTOCK_MASTER_PORT=port)
    assert not list(tmp_path.glob("spark-*"))
    for job in range(100):
        (tmp_path / f"spark-{job}").mkdir()
    assert "is there already: somebody else may have made it" in run()
    assert len(list(tmp_path.glob("spark-*"))) == 100


@pytest.mark.skipif(
    "PENSTOCK_NIGHT" not in os.environ, reason="takes 100 s, because Spark retries for 60 s: make nightly"
)
def test_a_slurm_cluster_refuses_applications_without_its_secret(slurm, installation, tmp_path):
    output = slurm.run(
        CONF / "slurm/penstock.sbatch",
        Path(__file__).parent / "uninvited.py",
        tmp_path,
        "invited",
        options=["--cpus-per-task=1"],
        PENSTOCK_VENV=str(installation.folder),
        PENSTOCK_EXECUTOR_MEMORY="600m",
        PENSTOCK_LOCAL_DIR=str(tmp_path),
    )
    results = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    strangers = results.pop("uninvited", None)
    assert strangers, output[-3000:]
    for name, (code, output_of_stranger) in strangers.items():
        assert code not in (None, 0), f"{name}: {output_of_stranger[-3000:]}"
        assert "All masters are unresponsive" in output_of_stranger, f"{name}: {output_of_stranger[-3000:]}"
    assert set(strangers) == {"without", "wrong"}
    assert results == {"invited": 1000}
    registered = [line for line in output.splitlines() if "Registered app " in line]
    assert len(registered) == 1, registered


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "names the Python environment"),
        ({"PENSTOCK_VENV": "here"}, "usage: sbatch"),
    ],
)
def test_the_batch_script_reports_missing_arguments(environment, words, tmp_path):
    script = CONF / "slurm/penstock.sbatch"
    completed = subprocess.run(
        ["bash", script],  # noqa: S607
        env={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "1"} | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode != 0
    assert words in completed.stderr
