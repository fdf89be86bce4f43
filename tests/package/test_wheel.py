"""The wheel in an empty environment: it starts, each extra brings what it is for, epochs run by every way to Spark."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import psycopg2
import pytest
import yaml

import lockstep
from lockstep.distribution import _EXTRAS
from stack.java import java_home
from tests.cases import cases
from tests.package.installed import (
    EXTRAS,
    PROJECT,
    ROOT,
    SHOP,
    Installed,
    build_wheel,
    check_for_upload,
    run_tool,
    versions_of,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # an environment with everything is made


def test_the_wheel_has_all_of_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"airflow_lockstep-{PROJECT['version']}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "plugins" / "lockstep"
    kept = {path for path in package.rglob("*") if path.suffix in (".py", ".sql", ".typed")}
    kept |= {path for folder in ("templates", "static") for path in (package / "airflow" / "ui" / folder).iterdir()}
    assert names == {path.relative_to(package.parent).as_posix() for path in kept}
    assert "lockstep/py.typed" in names


def test_code_of_others_in_the_wheel_comes_with_its_licence_and_is_named(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        others = [Path(name).name.partition("-")[0] for name in archive.namelist() if name.endswith(".min.js")]
        [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        told = re.findall(r"^License-File: (.+)$", archive.read(metadata).decode(), re.M)
    assert others and {f"{name}-LICENSE.txt" for name in others} <= {Path(one).name for one in told}
    page = (ROOT / "docs" / "dependencies.md").read_text()
    assert all(f"[{name}](" in page for name in others)


def test_the_source_distribution_has_what_is_needed_and_the_index_would_take_both(dist: Path, wheel: Path) -> None:
    [sdist] = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        assert {"LICENSE", "README.md", "CHANGELOG.md", "docs/protocol.md", "dags/lockstep_recovery.py"} <= names
        assert not [name for name in names if name.endswith(".pyc") or name.startswith((".", "tests", "stack"))]
    check_for_upload([sdist, wheel])


def test_the_image_of_the_deployment_copies_all_that_the_package_is_built_from(tmp_path: Path) -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
    steps = compose["x-image"]["build"]["dockerfile_inline"].partition("--no-build-isolation .")[0]
    for source in re.findall(r"^COPY (.*) \S+$", steps, re.M):
        for name in source.split():
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, tmp_path / name)
    assert [wheel.name for wheel in build_wheel(tmp_path)] == [
        f"airflow_lockstep-{PROJECT['version']}-py3-none-any.whl"
    ]


def test_the_empty_environment_has_a_command_line_that_starts(installed: Callable[[str], Installed]) -> None:
    bare = installed("")
    helped = bare.run("lockstep", "--help")
    assert helped.returncode == 0, helped.stderr
    assert "recover" in helped.stdout
    assert bare.run("lockstep", "--version").stdout == f"lockstep {PROJECT['version']}\n"
    assert bare.python("import lockstep; print(lockstep.__version__)") == f"{PROJECT['version']}\n"


def test_every_module_imports_or_says_which_extra_it_wants(installed: Callable[[str], Installed]) -> None:
    script = """
import importlib, pkgutil, lockstep
for found in pkgutil.walk_packages(lockstep.__path__, "lockstep."):
    try:
        importlib.import_module(found.name)
    except ModuleNotFoundError as error:
        print(error.name.partition(".")[0])
"""
    missing = set(installed("").python(script).split())
    assert missing == {
        "airflow",
        "attrs",
        "confluent_kafka",
        "deltalake",
        "grpc",
        "httpx",
        "pyiceberg",
        "pymysql",
        "pyspark",
    }  # grpc comes with Spark Connect, attrs with OpenLineage's client


NEEDS = {
    "from lockstep.sinks import HttpSink": "http",
    "from lockstep.sinks import DeltaSink; DeltaSink('t', output='o', path='/t').open(None)": "delta",
    "from lockstep.connections.duckdb import engine; engine().__enter__()": "duckdb",
    "from lockstep.sinks import IcebergSink": "iceberg",
    "from lockstep.sinks import KafkaSink": "kafka",
    "from lockstep.sources import KafkaSource": "kafka",
    "from lockstep.sinks import MariaDbSink": "mariadb",
    "from lockstep.sources import MariaDbTableSource": "mariadb",
    "from lockstep import epoch_dag": "airflow",
    "from lockstep import recovery_dag": "airflow",
    "from lockstep import enrich": "spark",
    "from lockstep.run import in_process; in_process(None, 'local[1]')('')": "spark",
}


@cases("script", NEEDS)
def test_what_is_missing_names_its_extra(installed: Callable[[str], Installed], script: str) -> None:
    done = installed("").run("python", "-c", script)
    assert f"pip install 'airflow-lockstep[{NEEDS[script]}]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("extra", EXTRAS)
@pytest.mark.sample(4)
def test_each_extra_alone_brings_what_it_is_for(installed: Callable[[str], Installed], extra: str) -> None:
    environment = installed(extra)
    packages = [package for package, brings in _EXTRAS.items() if brings == extra]
    scripts = [script.partition(";")[0] for script, needed in NEEDS.items() if needed == extra and "import" in script]
    for script in [*(f"import {package}" for package in packages), *scripts]:
        environment.python(script)


def test_airflow_finds_the_plugin_and_the_provider_once(installed: Callable[[str], Installed], tmp_path: Path) -> None:
    script = """
import sys, types as before
from airflow import plugins_manager
from airflow.providers_manager import ProvidersManager
if hasattr(plugins_manager, "_get_plugins"):
    plugins, errors = plugins_manager._get_plugins()
else:  # 3.1
    plugins_manager.ensure_plugins_loaded()
    plugins, errors = plugins_manager.plugins, plugins_manager.import_errors
assert not errors, errors
print([f"{plugin.name} {plugin.version}" for plugin in plugins if plugin.name == "lockstep"])
assert not [name for name in ("digest", "epoch", "begin", "states", "ledger") if name in sys.modules]
import types as after
assert after is before
print(ProvidersManager().providers["airflow-lockstep"].version)
"""
    version = PROJECT["version"]
    for folder in (tmp_path / "none", ROOT / "plugins"):
        out = installed("airflow").python(
            script, AIRFLOW_HOME=str(tmp_path), AIRFLOW__CORE__PLUGINS_FOLDER=str(folder), PYTHONDONTWRITEBYTECODE="1"
        )
        assert out.splitlines()[-2:] == [f"['lockstep {version}']", version]


class Shop:
    """A user's folder with a pipeline, input for a day, a ledger and a warehouse."""

    def __init__(self, folder: Path, ledger: str, warehouse: str) -> None:
        self.folder, self.warehouse = folder, warehouse
        self.environment = {
            "LOCKSTEP_HOME": str(folder),
            "LOCKSTEP_LEDGER": ledger,
            "LOCKSTEP_WAREHOUSE": warehouse,
            "LOCKSTEP_STAGING": str(folder / "staging"),
            "PYTHONPATH": str(folder),
            "JAVA_HOME": str(java_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        (folder / "landing").mkdir()
        (folder / "landing" / "2026-01-01.csv").write_text("id,amount\n1,10.50\n2,-3.00\n3,1.25\n")
        (folder / "shop.py").write_text(SHOP)
        shutil.copy2(Path(__file__).with_name("run_installed.py"), folder)

    def run(self, environment: Installed, *arguments: str, **variables: str) -> None:
        done = environment.run("python", self.folder / "run_installed.py", *arguments, **self.environment, **variables)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        assert done.stdout.splitlines()[-1] == "cleaned"

    def require_shown(self) -> None:
        with psycopg2.connect(self.warehouse) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id, amount::text FROM paid ORDER BY id")
            assert cursor.fetchall() == [(1, "10.50"), (3, "1.25")]
        connection.close()
        assert len(lockstep.files(str(self.folder / "out" / "refunds"))) == 1


@pytest.fixture
def shop(tmp_path: Path, empty_dsn: str, warehouse_dsn: str) -> Shop:
    return Shop(tmp_path, empty_dsn, warehouse_dsn)


def test_an_epoch_runs_by_connect(installed: Callable[[str], Installed], shop: Shop, spark_connect: str) -> None:
    shop.run(installed("spark"), "connect", spark_connect)
    shop.require_shown()


def test_an_epoch_runs_by_spark_submit(installed: Callable[[str], Installed], shop: Shop) -> None:
    shop.run(installed("spark"), "submit", "local[2]")
    shop.require_shown()


def test_an_epoch_runs_by_the_spark_submit_of_airflow(installed: Callable[[str], Installed], shop: Shop) -> None:
    spark = json.dumps({"conn_type": "spark", "host": "local[2]"})
    home = str(shop.folder / "airflow")
    shop.run(installed(",".join(EXTRAS)), "airflow", "", AIRFLOW_CONN_SPARK=spark, AIRFLOW_HOME=home)
    shop.require_shown()


# --- all that the package and its extras draw in ---


@pytest.fixture(scope="module")
def everything(installed: Callable[[str], Installed]) -> Installed:
    return installed(",".join(EXTRAS))


def test_every_dependency_has_a_licence_that_is_allowed(everything: Installed) -> None:
    """By `[tool.pip-licenses]` of pyproject.toml; a licence that is not allowed is told by its package."""
    python = str(everything.folder / "bin" / "python")
    for arguments, code in (([], 0), (["--allow-only", "Apache-2.0"], 1)):
        done = run_tool("pip-licenses>=5.5", "pip-licenses", "--python", python, *arguments)
        said = done.stdout + done.stderr
        assert bool(done.returncode) == bool(code), f"allow it here and in docs/dependencies.md, or do without: {said}"
    assert "not in allow-only licenses was found for package" in said


def _audit(versions: dict[str, str], folder: Path) -> tuple[dict[str, list[str]], list[str]]:
    """Vulnerabilities by package, and the packages of which nothing could be learnt."""
    wanted = folder / "requirements.txt"
    wanted.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
    how = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = run_tool("pip-audit>=2.10", "pip-audit", "--requirement", wanted, *how)
    if not done.stdout.startswith("{"):
        return {}, sorted(versions)
    found = json.loads(done.stdout)["dependencies"]
    vulnerable = {one["name"]: [bug["id"] for bug in one["vulns"]] for one in found if one.get("vulns")}
    return vulnerable, [one["name"] for one in found if "skip_reason" in one]


def test_no_dependency_has_a_known_vulnerability(everything: Installed, tmp_path: Path) -> None:
    """pip-audit ends with 0 where it could look nothing up; that is no pass here, but a skip that says so."""
    versions = versions_of(everything)
    _, unknown = _audit({"packaging": versions["packaging"]}, tmp_path)  # one, before the index is asked for all
    if unknown:
        pytest.skip(
            "NOT CHECKED for vulnerabilities: pip-audit learns nothing from the package index that is configured"
        )
    vulnerable, unknown = _audit(versions, tmp_path)
    assert vulnerable == {}
    if unknown:
        pytest.skip(f"no vulnerability is known, but NOT CHECKED: {', '.join(unknown)}")
