"""Audits that are functions of a user's: what they give offends, and whatever goes wrong in one has not passed."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockstep.audits import Audit, evaluate, function
from lockstep.audits.audit import audit_from_spec
from lockstep.audits.evaluate import SAMPLE, ask
from lockstep.errors import AuditFailed, InvalidPipeline, SourceUnavailable
from tests.audits import checks
from tests.audits.test_evaluate import ORDERS, Sealed, asked, occasion, sealed

__all__ = ["sealed"]


def test_the_rows_that_a_function_gives_offend(sealed: Sealed, subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, int]] = [
        (checks.dear, 2),
        (checks.dear_by_mask, 2),
        (checks.dear_by_array, 2),
        (checks.keys_that_come_twice, 2),
        (checks.all_of_them, 5),
        (checks.none_of_them, 0),
        (checks.more_than_zero, 3),
        ("tests.audits.checks:by_lambda", 5),
        ("tests.audits.checks:closure", 2),
    ]
    wal, empty = sealed(orders=ORDERS), sealed(orders=ORDERS.slice(0, 0))
    for check, offending in cases:
        with subtests.test(check=check, offending=offending):
            answer = asked(wal, function("orders", check))
            assert (answer.result.offending, len(answer.sample)) == (offending, offending)
            assert asked(empty, function("orders", check)).result.offending == 0


def test_a_sample_has_the_columns_that_were_given_nested_ones_too(sealed: Sealed) -> None:
    wal = sealed(orders=ORDERS)
    rows = asked(wal, function("orders", checks.dear)).sample
    assert {row["amount"] for row in rows} == {Decimal("1.50"), Decimal("0.00")} and set(rows[0]) == set(
        ORDERS.column_names
    )
    assert sorted(map(str, (row["tags"] for row in rows))) == ["['x']", "['z', 'x']"]
    assert asked(wal, function("orders", checks.keys_that_come_twice)).sample == [{"id": 2}, {"id": None}]
    many = sealed(orders=pa.table({"id": range(1, 1000)}))
    answer = asked(many, function("orders", checks.more_than_zero))
    assert (answer.result.offending, len(answer.sample)) == (999, SAMPLE)


def test_rows_whose_times_python_has_no_year_for_offend_as_others_do(sealed: Sealed) -> None:
    late = 4_000_000  # days
    orders = pa.table(
        {
            "day": pa.array([20454, late], pa.int32()).cast(pa.date32()),
            "at": pa.array([0, late * 86_400_000_000], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "days": pa.array([[0], [late]], pa.list_(pa.int32())).cast(pa.list_(pa.date32())),
        }
    )
    answer = asked(sealed(orders=orders), function("orders", checks.all_of_them))
    assert answer.result.offending == 2
    assert [row["days"] for row in answer.sample] == ["<list<element: date32[day]>>"] * 2
    assert answer.sample[0]["day"] == "2026-01-01" and str(answer.sample[1]["at"]).startswith("12921-")


@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_function_that_fails_or_gives_no_rows_of_the_output_has_not_passed(
    sealed: Sealed, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases: list[tuple[Any, str]] = [
        (checks.adds_up, r"fails: TypeError \(LOCKSTEP_SHOW_ROWS=1 "),
        (checks.mentions, r"fails: ValueError \(LOCKSTEP_SHOW_ROWS=1 .*checks\.py:\d+, in mentions: raise ValueError"),
        (checks.misspells, r"AttributeError: .*has no attribute 'where' \(.*in misspells: return orders\.where"),
        (checks.leaves, "fails: "),
        (checks.gives_nothing, "gives None: give a pyarrow.Table"),
        (checks.gives_a_list, "gives a list: give"),
        (checks.gives_a_promise, "gives a coroutine: give"),
        (checks.gives_one_boolean, "gives a BooleanScalar: give"),
        (checks.gives_numbers, "gives an array of int64: give booleans"),
        (checks.gives_a_short_mask, "gives 1 booleans, and the output has 5 rows"),
        (checks.gives_another_column, r"doesn't have: why \(string\)"),
        (checks.gives_another_type, r"id \(string\), which is int64 in the output"),
        (checks.gives_more_rows, "gives 10 rows, and the output has 5"),
        (checks.gives_no_column, "gives rows without a column"),
    ]
    wal = sealed(orders=ORDERS)
    for check, said in cases:
        with subtests.test(check=check, said=said):
            audit = function("orders", check, blocking=False)
            with pytest.raises(AuditFailed, match=said) as told:
                asked(wal, audit)
            assert f"audit {audit.name}: tests.audits.checks:{check.__name__} " in str(told.value)
            assert "replan" in str(told.value) and "hara" not in _all_said(told.value)
    monkeypatch.setenv("LOCKSTEP_SHOW_ROWS", "1")
    with pytest.raises(AuditFailed, match="o'hara"):
        asked(wal, function("orders", checks.mentions))


def _all_said(error: BaseException | None) -> str:
    """What a traceback would print."""
    return (
        f"{error}{_all_said(error.__cause__ or (None if error.__suppress_context__ else error.__context__))}"
        if error
        else ""
    )


def test_what_passes_by_itself_is_raised_as_it_is(sealed: Sealed, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_reach(orders: pa.Table) -> pa.Table:
        raise SourceUnavailable("the list of carriers")

    audit = function("orders", checks.dear)
    wal, spec = sealed(orders=ORDERS), audit.spec()
    monkeypatch.setattr(checks, "dear", out_of_reach)
    monkeypatch.setattr("lockstep.audits.calling.describe_version", lambda _: spec["version"])
    with pytest.raises(SourceUnavailable):
        ask([audit_from_spec(spec)], occasion(), wal)


def audits_of(*audits: Audit) -> list[Audit]:
    """As a plan froze them."""
    return [audit_from_spec(one.spec()) for one in audits]


# --- which function it is -------------------------------------------------------------------------------------------


@pytest.fixture
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module that any process may import, as a deployment does."""
    folder = tmp_path / "deployed"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def deploy(name: str, source: str) -> str:
        (folder / f"{name}.py").write_text(source)
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return name

    yield deploy
    for path in folder.glob("*.py"):
        sys.modules.pop(path.stem, None)


SOURCE = "def strange(rows):\n    return rows.slice(0, {most})\n"


def test_a_function_that_was_changed_since_the_plan_is_not_asked(sealed: Sealed, deployed: Any) -> None:
    wal, name = sealed(orders=ORDERS), deployed("lockstep_own_checks", SOURCE.format(most=2))
    audit = function("orders", f"{name}:strange")
    [planned] = audits_of(audit)
    assert ask([planned], occasion(), wal)[0].result.offending == 2
    deployed(name, SOURCE.format(most=0))
    with pytest.raises(AuditFailed, match=r"planned with version \w{12} of lockstep_own_checks:strange, .*by replan"):
        ask([planned], occasion(), wal)
    assert ask(audits_of(audit), occasion(), wal)[0].result.offending == 0, "today's is what a replan takes"
    deployed(name, SOURCE.format(most=2))
    assert ask([planned], occasion(), wal)[0].result.offending == 2, "it was put back"


def test_a_function_is_another_one_where_its_name_leads_elsewhere(sealed: Sealed, deployed: Any) -> None:
    inner = "def one(rows):\n    return rows\n\ndef other(rows):\n    return rows.slice(0, 0)\n"
    deployed("lockstep_inner_checks", inner)
    name = deployed("lockstep_outer_checks", "from lockstep_inner_checks import one as strange\n")
    [planned] = audits_of(function("orders", f"{name}:strange"))
    deployed(name, "from lockstep_inner_checks import other as strange\n")
    with pytest.raises(AuditFailed, match="planned with version"):
        ask([planned], occasion(), sealed(orders=ORDERS))
    deployed(name, "from lockstep_inner_checks import one as strange\n")
    deployed("lockstep_inner_checks", inner + "\n# another one\n")
    deployed(name, "from lockstep_inner_checks import one as strange\n")
    with pytest.raises(AuditFailed, match="planned with version"):
        ask([planned], occasion(), sealed(orders=ORDERS))


def edit(name: str, source: str) -> None:
    """The module's file; what was imported stays."""
    Path(str(sys.modules[name].__file__)).write_text(source)


def version_of(audit: Audit) -> Any:
    spec: Any = audit.spec()
    return spec["version"]


@pytest.mark.fault("J23")
def test_what_was_loaded_is_planned_and_asked_whatever_its_file_says_by_now(sealed: Sealed, deployed: Any) -> None:
    wal, name = sealed(orders=ORDERS), deployed("lockstep_edited_checks", TWO_OF_THEM)
    importlib.import_module(name)
    audit = function("orders", f"{name}:strange")
    for source in (TWO_OF_THEM.replace("[0, 2]", "[0, 0]"), "def strange(:\n", ""):
        edit(name, source)
        for _ in range(2):  # what it keeps between two calls makes it no other one
            assert ask(audits_of(audit), occasion(), wal)[0].result.offending == 2
            assert version_of(audit) == hash_of(TWO_OF_THEM)
    deployed(name, TWO_OF_THEM.replace("[0, 2]", "[0, 0]"))
    assert version_of(audit) == hash_of(TWO_OF_THEM.replace("[0, 2]", "[0, 0]"))
    assert ask(audits_of(audit), occasion(), wal)[0].result.offending == 0


TWO_OF_THEM = """
import functools
MOST = 2
LIMITS = [0, 2]
_cache = None

def strange(rows):
    assert rows is not None
    return Limit.of(rows.slice(LIMITS[0], limited(LIMITS[1])), lambda one: one in {"a", "b", "c"})

def keeping(function):
    @functools.wraps(function)
    def kept(*arguments):
        global _cache
        _cache = arguments
        return function(*arguments)
    return kept

@keeping
@functools.lru_cache
def limited(most):
    return min(most, MOST)

class Limit:
    @staticmethod
    def of(rows, sieve):
        return rows.slice(0, MOST)
"""


def hash_of(source: str) -> str:
    """By which plans of every version tell a source."""
    return hashlib.sha256(source.encode()).hexdigest()[:12]


EDITS = [
    ("MOST = 2", "MOST = 0"),
    ("slice(0, MOST)", "slice(0, 0)"),
    ('"c"}', '"d"}'),
    ("min(most, MOST)", "0"),
]


@pytest.mark.fault("J23")
def test_a_file_that_was_edited_before_anybody_looked_is_not_what_is_planned(
    sealed: Sealed, deployed: Any, subtests: pytest.Subtests
) -> None:
    wal = sealed(orders=ORDERS)
    for old, new in EDITS:
        with subtests.test(old=old, new=new):
            name = deployed("lockstep_stale_checks", TWO_OF_THEM)
            importlib.import_module(name)
            edited = TWO_OF_THEM.replace(old, new)
            edit(name, edited)
            audit = function("orders", f"{name}:strange")
            [planned] = audits_of(audit)
            assert version_of(audit).startswith("live:")
            assert ask([planned], occasion(), wal)[0].result.offending == 2, "what was planned is what is asked"
            deployed(name, edited)
            with pytest.raises(AuditFailed, match=r"planned with version live:\w{12} of .*, and it is \w{12} now"):
                ask([planned], occasion(), wal)
            [planned] = audits_of(audit)
            deployed(name, TWO_OF_THEM)
            importlib.import_module(name)
            edit(name, edited)
            with pytest.raises(AuditFailed, match=r"it is live:\w{12} now; its file was edited since this process"):
                ask([planned], occasion(), wal)
            edit(name, TWO_OF_THEM)
            assert version_of(audit) == hash_of(TWO_OF_THEM), "it was put back"


LOOKS = """
import importlib, pathlib, sys
from lockstep.definition.user_code import describe_version
module = importlib.import_module(sys.argv[1])
if sys.argv[2]:
    pathlib.Path(module.__file__).write_text(sys.argv[2])
print(describe_version(f"{sys.argv[1]}:strange"))
"""


@pytest.mark.tier("test")
@pytest.mark.parametrize("edited", ["", TWO_OF_THEM.replace("MOST = 2", "MOST = 0")])
def test_every_process_tells_the_same_version(deployed: Any, tmp_path: Path, edited: str) -> None:
    told = set()
    for seed, flags in (("1", []), ("2", ["-X", "no_debug_ranges"])):
        name = deployed("lockstep_told_checks", TWO_OF_THEM)
        path = os.pathsep.join([str(tmp_path / "deployed"), *sys.path])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, *flags, "-c", LOOKS, name, edited]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
        told.add(done.stdout.strip())
    [version] = told
    assert version.startswith("live:") if edited else version == hash_of(TWO_OF_THEM)


def test_a_function_that_is_gone_is_named_and_nothing_has_passed(
    sealed: Sealed, deployed: Any, subtests: pytest.Subtests
) -> None:
    wal = sealed(orders=ORDERS)
    for source in ("", "strange = 7\n", "import nothing_of_that_name\n", "def strange(:\n"):
        with subtests.test(source=source):
            name = deployed("lockstep_gone_checks", SOURCE.format(most=2))
            [planned] = audits_of(function("orders", f"{name}:strange"))
            deployed(name, source)
            with pytest.raises(AuditFailed, match=r"audit strange_orders: .*lockstep_gone_checks:strange.*replan"):
                ask([planned], occasion(), wal)


def test_a_plan_is_read_without_the_function(deployed: Any) -> None:
    """By whoever shows it, and by recovery."""
    name = deployed("lockstep_read_checks", SOURCE.format(most=2))
    spec = function("orders", f"{name}:strange", over="spark", blocking=False).spec()
    deployed(name, "")
    assert audit_from_spec(spec).spec() == spec


def test_what_no_other_process_could_call_is_refused_before_anything_is_planned(subtests: pytest.Subtests) -> None:
    cases: list[Any] = [
        lambda: function("orders", lambda orders: orders),
        lambda: function("orders", checks.closure),
        lambda: function("orders", checks.checks.method),
        lambda: function("orders", checks.some),
        lambda: function("orders", "tests.audits.checks"),
        lambda: function("orders", checks.dear, over="pandas"),
        lambda: function("orders", checks.dear, quarantine=True),
        lambda: function("orders", "tests.audits.checks:some").spec(),
        lambda: function("orders", "tests.audits.checks:checks").spec(),
        lambda: function("orders", "tests.audits.checks:nobody").spec(),
        lambda: function("orders", "tests.audits.checks:Checks.method").spec(),
        lambda: function("orders", "builtins:len").spec(),
    ]
    for make in cases:
        with subtests.test(make=make), pytest.raises(InvalidPipeline):
            make()


# --- more than there is room for ------------------------------------------------------------------------------------


def test_more_than_memory_is_refused_by_name(sealed: Sealed, monkeypatch: pytest.MonkeyPatch) -> None:
    wal = sealed(orders=pa.table({"id": pa.array(range(200_000), pa.int64())}))
    monkeypatch.setattr(evaluate, "MOST_BYTES", 1_000_000)
    with pytest.raises(AuditFailed, match=r"output orders is more than 1,000,000 bytes in memory.*over='spark'"):
        asked(wal, function("orders", checks.none_of_them))
    monkeypatch.setattr(evaluate, "MOST_BYTES", 10_000_000)
    assert asked(wal, function("orders", checks.none_of_them)).result.offending == 0


def test_over_a_dataframe_without_spark_nothing_has_passed(sealed: Sealed) -> None:
    with pytest.raises(AuditFailed, match="no Spark is at hand"):
        asked(sealed(orders=ORDERS), function("orders", checks.many, over="spark"))
