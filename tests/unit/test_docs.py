"""The documentation against the code: diagrams, lists of names, links and examples, the site that is made of them."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml

import lockstep.sinks
from lockstep.airflow import OLDEST as OLDEST_AIRFLOW
from lockstep.connections.postgres.connection import OLDEST as OLDEST_POSTGRES
from lockstep.crash import CrashPoint
from lockstep.ledger.measures import GAUGES
from lockstep.operations.exporter import LEDGER_UP, SCRAPE_SECONDS
from lockstep.spark.versions import NEWEST as NEWEST_SPARK
from lockstep.spark.versions import OLDEST as OLDEST_SPARK
from lockstep.spark.versions import line_of
from lockstep.states import TRANSITIONS, EpochState, Fence, ParticipantState, Transition
from tests import matrix

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS.rglob("*.md")])


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _section(page: Path, heading: str) -> str:
    """What stands under `heading`, up to the next one of its level or above."""
    level = heading.split(" ")[0]
    found = re.search(rf"^{re.escape(heading)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)", page.read_text(), re.M | re.S)
    assert found, f"{_named(page)} has no heading {heading!r}"
    return found[1]


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


def _rows(text: str) -> list[list[str]]:
    """The cells of each row of the Markdown tables in `text`, without headings."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines]
    return [
        row for row, after in zip(cells, [*cells[1:], [""]], strict=True) if not _is_rule(row) and not _is_rule(after)
    ]


def _is_rule(row: list[str]) -> bool:
    return all(re.fullmatch(r":?-+:?", cell) for cell in row)


# --- the protocol ----------------------------------------------------------------------------------------------------


def diagram(arrows: tuple[Transition[Any], ...]) -> str:
    """A Mermaid state diagram of some arrows of `TRANSITIONS`."""
    lines = [f"    {arrow.source or '[*]'} --> {arrow.target}: {_roles(arrow)}" for arrow in arrows]
    sources = {arrow.source for arrow in arrows}
    last = dict.fromkeys(arrow.target for arrow in arrows if arrow.target not in sources)
    return "\n".join(["stateDiagram-v2", *lines, *(f"    {state} --> [*]" for state in last), ""])


def _roles(arrow: Transition[Any]) -> str:
    return ", ".join(sorted(role.value for role in arrow.roles))


def test_the_state_diagrams_are_those_of_the_table() -> None:
    machines: list[tuple[str, type[StrEnum]]] = [("### Epoch", EpochState), ("### Participant", ParticipantState)]
    for heading, machine in machines:
        [drawn] = re.findall(r"```mermaid\n(.*?)```", _section(DOCS / "protocol.md", heading), re.S)
        assert drawn == diagram(TRANSITIONS[machine]), "put the right-hand side into docs/protocol.md"


def test_the_fences_are_those_of_the_table() -> None:
    told = {row[0].strip("`"): row[2] for row in _rows(_section(DOCS / "protocol.md", "### Fences"))}
    arrows = [arrow for machine in TRANSITIONS.values() for arrow in machine]
    for fence in Fence:
        under = [f"{arrow.source or 'nothing'} → {arrow.target}" for arrow in arrows if arrow.fence is fence]
        assert told[fence.value] == ", ".join(under)


def test_every_crash_point_says_what_happens_when_a_process_dies_there() -> None:
    told = [row[0].strip("`") for row in _rows(_section(DOCS / "protocol.md", "## If it dies here"))]
    assert told == [point.value for point in CrashPoint]


# --- faults ----------------------------------------------------------------------------------------------------------


def _tests_named_in_the_docs() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        yield from re.findall(r"(tests/[\w/]+\.py)::(\w+)", page.read_text())


def test_every_test_that_the_docs_name_exists() -> None:
    missing = [
        f"{path}::{name}" for path, name in set(_tests_named_in_the_docs()) if name not in _functions_of(ROOT / path)
    ]
    assert missing == []


def _functions_of(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    return set(re.findall(r"^(?:async )?def (\w+)", path.read_text(), re.M))


def _marked_tests() -> dict[str, list[str]]:
    """The tests of each fault, in the order of their names."""
    tests: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for faults, test in re.findall(MARKED, path.read_text(), re.M):
            for fault in re.findall(r'"(\w+)"', faults):
                tests[fault].append(f"`{_named(path)}::{test}`")
    return tests


#: a mark, other decorators, the test
MARKED = r"^@pytest\.mark\.fault\(([^)]*)\)\n(?:(?!def ).*\n)*?def (\w+)"


def _with_tests(line: str, tests: dict[str, list[str]]) -> str:
    """A row of the table with the tests that are marked; another line as it is."""
    if not (row := re.match(r"\| ([A-Z]\d+) \|", line)):
        return line
    *cells, shown_by = re.split(r"(?<!\\)\|", line.rstrip("|"))
    reason = shown_by.partition("`tests/")[0].strip().removesuffix("<br>")
    return "|".join([*cells, " " + " ".join(filter(None, [reason, "<br>".join(tests[row[1]])])) + " |"])


def test_the_page_of_faults_names_the_tests_that_are_marked() -> None:
    page, tests = DOCS / "faults.md", _marked_tests()
    lines = page.read_text().splitlines()
    written = [_with_tests(line, tests) for line in lines]
    if os.environ.get("LOCKSTEP_WRITE_DOCS"):
        page.write_text("\n".join(written) + "\n")
        lines = written
    differ = [new for old, new in zip(lines, written, strict=True) if old != new]
    assert differ == []
    rows = {row[0]: row[-1] for row in _rows("\n".join(lines)) if re.fullmatch(r"[A-Z]\d+", row[0])}
    assert len(rows) > 80 and tests.keys() <= rows.keys()
    assert [fault for fault, cell in rows.items() if not cell.startswith("not covered:") and "::" not in cell] == []


# --- examples --------------------------------------------------------------------------------------------------------

PUBLIC_MODULES = ["audits", "launchers", "sdk", "sinks", "sources", "testing"]
ELSEWHERE = tuple(
    f"airflow.providers.{name}." for name in ("cncf.kubernetes", "amazon", "google", "databricks", "apache.livy")
)
#: modules that the examples themselves define
OWN = ("spark_apps.orders", "orders_sink", "refunds_gauge", "transactional_file_sink")


@pytest.mark.tier("test")
def test_examples_compile_and_import_what_exists() -> None:
    examples = [(_named(page), block) for page in PAGES for block in _blocks(page, "python")]
    assert len(examples) > 50
    imported = {
        (page, node.module or "", alias.name)
        for page, example in examples
        for node in ast.walk(ast.parse(example, page))
        if isinstance(node, ast.ImportFrom) and node.module not in OWN
        for alias in node.names
    }
    # of ELSEWHERE nothing else here takes them: tests/package/test_provider_hooks.py runs what does
    checked = {(module, name) for _, module, name in imported if not module.startswith(ELSEWHERE)}
    lacking = {(module, name) for module, name in checked if not _offers(module, name)}
    assert [one for one in imported if one[1:] in lacking] == []


def _offers(module: str, name: str) -> bool:
    if not module or not importlib.util.find_spec(module):
        return False
    if module == "lockstep":
        return name in lockstep.__all__
    if module.startswith(("airflow", "pyspark")):
        return True  # importing them takes seconds, and tests/dags and tests/spark do
    return hasattr(importlib.import_module(module), name)


# --- links, words, deployment ----------------------------------------------------------------------------------------


def test_links_lead_somewhere_and_each_page_is_in_the_index_and_in_the_navigation() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text())]
    assert [(_named(page), link) for page, link in links if not (page.parent / link).exists()] == []
    linked = set(re.findall(r"\]\(([\w/-]+\.md)[)#]", (DOCS / "index.md").read_text())) | {"index.md"}
    assert {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} == linked
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2].partition("\nplugins:")[0]
    found = re.findall(r": ([\w/-]+\.md)$", navigation, re.M)
    assert sorted(found) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_the_reference_has_every_public_name() -> None:
    reference = (DOCS / "reference" / "python.md").read_text()
    for module in ["lockstep", *(f"lockstep.{name}" for name in PUBLIC_MODULES)]:
        told = re.findall(rf"^::: {module}\.(\w+)$", reference, re.M)
        names = [name for name in importlib.import_module(module).__all__ if name != "__version__"]
        assert sorted(told) == sorted(names), module


def test_every_extra_says_what_it_brings() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    told = {row[0].strip("`"): row[2].split(", ") for row in _rows(_section(DOCS / "dependencies.md", "## Extras"))}
    assert {extra: told.get(extra) for extra in extras} == {
        extra: [re.split(r"[\[><=]", wanted)[0] for wanted in brought] for extra, brought in extras.items()
    }


def test_every_metric_stands_in_the_table_and_alerts_are_of_such() -> None:
    told = {
        name for row in _rows(_section(DOCS / "monitoring.md", "## What is measured")) for name in _metrics_in(row[0])
    }
    assert told == {LEDGER_UP, SCRAPE_SECONDS, *(gauge.name for gauge in GAUGES)}
    [group] = yaml.safe_load((DOCS / "lockstep.rules.yaml").read_text())["groups"]
    explained = [row[0].strip("`") for row in _rows(_section(DOCS / "monitoring.md", "## Alerts"))]
    assert [rule["alert"] for rule in group["rules"]] == explained
    for rule in group["rules"]:
        used = _metrics_in(rule["expr"])
        assert used and used <= told, rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket") and rule["for"]
        assert rule["annotations"].keys() == {"summary", "todo"}


def _metrics_in(text: str) -> set[str]:
    return set(re.findall(r"\blockstep_\w+", text))


def test_every_alert_fires_in_one_of_the_cases_and_tells_what_they_say() -> None:
    [group] = yaml.safe_load((DOCS / "lockstep.rules.yaml").read_text())["groups"]
    cases = yaml.safe_load((DOCS / "lockstep.rules.test.yaml").read_text())["tests"]
    fire = {
        yaml.safe_load(sample["labels"].replace("=", ": "))["alertname"]
        for case in cases
        for asked in case.get("promql_expr_test", [])
        for sample in asked["exp_samples"]
    }
    fire |= {one["alertname"] for case in cases for one in case.get("alert_rule_test", []) if one["exp_alerts"]}
    assert {rule["alert"] for rule in group["rules"]} == fire
    promtool = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here: put the one of a Prometheus onto the PATH, or say where it is by PROMTOOL")
    command = [promtool, "test", "rules", str(DOCS / "lockstep.rules.test.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_sink_stands_in_the_table_of_guarantees() -> None:
    told = {re.split(r"[, ]", row[0])[0] for row in _rows((DOCS / "sinks" / "guarantees.md").read_text())}
    sinks = {name for name in lockstep.sinks.__all__ if name.endswith("Sink")}
    assert sinks - told == set(), "give its test module a line with expect_row"


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
    return found


@pytest.mark.tier("test")
def test_the_deployment_is_a_compose_file() -> None:
    """By the schema of the Compose specification; a word that isn't of it would be passed over, or refused."""
    program = Path(sys.executable).with_name("check-jsonschema")
    schema = ["--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([program, *schema, ROOT / "docker-compose.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_deployment_publishes_only_the_ui_and_only_on_loopback() -> None:
    services = _compose()["services"]
    ports = {name: service.get("ports") for name, service in services.items() if service.get("ports")}
    assert ports == {"api-server": ["127.0.0.1:8080:8080"]}
    assert [name for name, service in services.items() if "network_mode" in service] == []  # the host's has every port


def test_the_deployment_has_no_password_of_its_own() -> None:
    text = (ROOT / "docker-compose.yaml").read_text()
    asked = re.findall(r"\$\{(\w+)(:\?|:-|-|\})", text)
    assert asked and all(how == ":?" for name, how in asked if re.search("PASSWORD|SECRET|KEY", name))
    settings = [
        (key, str(value))
        for service in _compose()["services"].values()
        for key, value in (service.get("environment") or {}).items()
        if re.search("PASSWORD|SECRET|_KEY$", key)
    ]
    assert settings and all("${" in value or key.endswith("_FILE") for key, value in settings)


def test_the_deployment_lists_every_variable_that_it_asks_for() -> None:
    text = (ROOT / "docker-compose.yaml").read_text()
    assert re.findall(r"^#   ([A-Z_]+)=", text, re.M) == [
        "LANDING",
        *sorted({*re.findall(r"\$\{(\w+)", text)} - {"LANDING"}),
    ]


def test_every_service_of_the_deployment_is_pinned_watched_and_started_again() -> None:
    compose = _compose()
    for name, service in compose["services"].items():
        image = service["image"]
        assert re.search(r":[\w.-]*\d[\w.-]*$", image), f"{name}: {image} is not pinned"
        once = service.get("restart") == "no" or service.get("restart") == "on-failure"
        assert once or "healthcheck" in service, f"{name} has no health check"
        assert service.get("restart"), f"{name} has no restart policy"
        for other, condition in (service.get("depends_on") or {}).items():
            assert other in compose["services"], f"{name} waits for {other}"
            assert condition["condition"] in ("service_healthy", "service_completed_successfully")


# --- the site, and what runs have written -----------------------------------------------------------------------------

BIN = Path(sys.executable).parent


@pytest.mark.tier("all")
def test_the_site_builds_and_no_link_in_it_leads_nowhere(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "plugins").symlink_to(ROOT / "plugins")
    command = [str(BIN / "zensical"), "build", "--clean", "--strict"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    reference = (tmp_path / "build" / "site" / "reference" / "python" / "index.html").read_text()
    assert 'id="lockstep.sinks.PostgresSink"' in reference and "Tables of one PostgreSQL database" in reference


@pytest.mark.tier("test")
def test_the_reference_of_the_command_line_says_what_help_says(tmp_path: Path) -> None:
    program = [str(BIN / "typer"), "lockstep.cli", "utils", "docs", "--name", "lockstep", "--title", "Command line"]
    subprocess.run([*program, "--output", str(tmp_path / "cli.md")], capture_output=True, check=True)
    told = DOCS / "reference" / "cli.md"
    assert told.read_text() == (tmp_path / "cli.md").read_text(), "`make docs` writes it anew"


def test_what_versions_are_taken_is_what_the_page_of_the_matrix_has_green_rows_of() -> None:
    page = matrix.PAGE.read_text()
    rows = matrix.read(page)
    assert matrix.render(rows) in page and {row.failed for row in rows} == {"0"}
    lines = {line_of(number) for row in rows for number in row.spark.split(", server ")}
    assert (min(lines), max(lines)) == (OLDEST_SPARK, NEWEST_SPARK)
    assert min(int(row.postgresql.partition(".")[0]) for row in rows) >= OLDEST_POSTGRES
    assert min(row.airflow.rpartition(".")[0] for row in rows) == OLDEST_AIRFLOW
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons = {one.rpartition(" :: ")[2] for one in project["classifiers"] if "Python :: 3." in one}
    assert {row.python.rpartition(".")[0] for row in rows} == pythons
    assert project["requires-python"] == f">={min(pythons)}"


# --- an image of one's own --------------------------------------------------------------------------------------------

ADDING = DOCS / "how-to" / "add-to-airflow.md"


def test_the_image_and_the_chart_are_of_the_airflow_and_the_version_that_the_docs_are_of() -> None:
    [image], [block] = _blocks(ADDING, "dockerfile"), _blocks(ADDING, "yaml")
    airflow = re.findall(r"^apache-airflow==(\S+)", (ROOT / "requirements.txt").read_text(), re.M)
    assert re.findall(r"^FROM apache/airflow:(.+)-python", image, re.M) == airflow
    assert set(re.findall(r"airflow_lockstep-([\d.]+)-py3", ADDING.read_text())) == {lockstep.__version__}
    values = yaml.safe_load(block)
    assert f"--tag {values['defaultAirflowRepository']}:{values['defaultAirflowTag']} ." in image
    assert values["defaultAirflowTag"] == f"{values['airflowVersion']}-{lockstep.__version__}"
    assert [values["airflowVersion"]] == airflow
    assert {tuple(one) for one in values["env"]} == {("name", "value")}  # the chart takes no valueFrom here
    assert yaml.safe_load(values["extraEnvFrom"]) == [{"secretRef": {"name": "lockstep"}}]  # the chart wants text
