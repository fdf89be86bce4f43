"""The launchers of docs/how-to/launchers.md and the logins of docs/how-to/logins.md by the providers' own hooks, of the
versions that these pages name, in an environment of its own. What the hooks' clients speak to is a stub on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cases import cases
from tests.package.installed import ROOT, Installed, install_into, versions_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # an environment with Airflow and the clients is made

HOW_TO = ROOT / "docs" / "how-to"
LAUNCHERS = HOW_TO / "launchers.md"
SCRIPT = Path(__file__).with_name("run_provider_hooks.py")
#: All that the hooks in question import. With all that the providers want it would be gigabytes, and a compiler.
CLIENTS = [
    "aiofiles==25.1.0",
    "aiohttp==3.14.5",
    "azure-common==1.1.28",
    "azure-identity==1.27.0",
    "boto3==1.44.8",
    "gcloud-aio-auth==5.6.0",
    "gcloud-aio-storage==9.6.5",
    "google-api-python-client==2.202.0",
    "google-auth-httplib2==0.4.4",
    "google-cloud-dataproc==5.32.0",
    "google-cloud-secret-manager==2.32.0",
    "google-cloud-storage==3.17.1",
    "kubernetes==36.0.3",
    "kubernetes-asyncio==36.1.0",
    "msrestazure==0.6.4.post1",
    "python-slugify==9.2.0",
    "requests-toolbelt==1.0.0",
]
HTTP = "apache-airflow-providers-http==6.3.0"  # whose hook Livy's is made from
#: by launcher: what it says, and what its hook or client takes for none of its arguments
WRONG = {
    "KubernetesLauncher": ("name=handle, namespace", "named=handle, namespace"),
    "ConnectClientLauncher": ("propagation_policy=", "propagation="),
    "EmrServerlessLauncher": ("executionRoleArn=", "roleArn="),
    "DataprocLauncher": ('"python_file_uris"', '"zips"'),
    "DatabricksLauncher": ("(run))", "(job=run))"),
    "LivyLauncher": ("py_files=", "zips="),
}
LOGINS = ["rds", "redshift", "mysql", "azure", "s3"]


def named() -> dict[str, str]:
    """Of the providers, the versions that the pages say were run."""
    pages = LAUNCHERS.read_text() + (HOW_TO / "logins.md").read_text()
    found = set(re.findall(r"`(apache-airflow-providers-[a-z-]+)` (\d+\.\d+)", pages))
    assert len(found) == len({name for name, _ in found}), f"of one provider the pages name two versions: {found}"
    return dict(found)


@pytest.fixture(scope="module")
def providers(installed: Callable[[str], Installed]) -> Installed:
    made = installed("airflow,mariadb")
    before = versions_of(made)
    install_into(made, *CLIENTS)
    install_into(made, "--no-deps", HTTP, *(f"{name}=={version}.*" for name, version in named().items()))
    after = versions_of(made)
    airflow = {name for name in before if name.startswith("apache-airflow")}
    assert {name: after[name] for name in airflow} == {name: before[name] for name in airflow}
    return made


@dataclass(frozen=True)
class Tried:
    """By name what went wrong, or nothing."""

    logins: dict[str, str]
    launchers: dict[str, str]
    broken: dict[str, str]  #: the launchers of a page that has `WRONG`


@pytest.fixture(scope="module")
def tried(providers: Installed, tmp_path_factory: pytest.TempPathFactory) -> Tried:
    """One process, as Airflow and the clients take long to import."""
    folder = tmp_path_factory.mktemp("airflow")
    broken, text = folder / "launchers.md", LAUNCHERS.read_text()
    for right, wrong in WRONG.values():
        assert right in text
        text = text.replace(right, wrong)
    broken.write_text(text)
    airflow = {"AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    done = providers.run("python", SCRIPT, LAUNCHERS, broken, **airflow)
    assert done.returncode == 0, f"{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
    return Tried(*json.loads(done.stdout.splitlines()[-1]))


def test_the_pages_name_the_providers_that_are_run(tried: Tried) -> None:
    short = {name.removeprefix("apache-airflow-providers-") for name in named()}
    assert short == {"amazon", "apache-livy", "cncf-kubernetes", "databricks", "google", "microsoft-azure", "mysql"}
    assert [*tried.launchers, *tried.logins] == [*WRONG, *LOGINS]


@cases("name", WRONG)
def test_a_launcher_runs_jobs_to_each_end_by_its_providers_own_hook(name: str, tried: Tried) -> None:
    assert tried.launchers[name] == ""


@cases("name", LOGINS)
def test_a_token_in_place_of_a_password_is_got_by_its_providers_own_hook(name: str, tried: Tried) -> None:
    assert tried.logins[name] == ""


@cases("name", WRONG)
def test_an_argument_that_a_hook_does_not_take_is_found(name: str, tried: Tried) -> None:
    [argument] = re.findall(r"\w+", WRONG[name][1])[:1]
    assert argument in tried.broken[name].splitlines()[-1], tried.broken[name]
