"""Which interval a run moves. Params are whatever somebody typed."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pendulum
import pytest

from lockstep.epoch import Input, Interval, RunKey
from lockstep.errors import IllegalTransition, IntervalMissing, InvalidPipeline, RestateRefused
from lockstep.pipeline import Pipeline
from tests.cases import cases
from tests.dags.pipelines import ORDERS, Numbers, pipeline_of

if TYPE_CHECKING:
    from airflow.sdk import Context

FIRST, SECOND = pendulum.datetime(2024, 1, 1), pendulum.datetime(2024, 1, 2)


def run(start: Any = None, end: Any = None, **context: Any) -> Context:
    return cast("Context", {"params": {"interval_start": start, "interval_end": end}, **context})


def interval_of(pipeline: Pipeline, context: Context) -> Interval | None:
    from lockstep.airflow import _run_conf

    return _run_conf.interval_of(pipeline, context)


def test_params_count_more_than_the_data_interval_and_are_taken_in_their_own_time_zone() -> None:
    days: dict[str, Any] = {"data_interval_start": FIRST, "data_interval_end": SECOND}
    found = interval_of(ORDERS, run(**days))
    assert found == Interval(FIRST, SECOND)
    assert found is not None and type(found.start).__module__ == "datetime"
    given = run("2024-03-01T02:00:00+02:00", "2024-03-02T00:00:00Z", **days)
    assert str(interval_of(ORDERS, given)) == "[2024-03-01T00:00:00+00:00, 2024-03-02T00:00:00+00:00)"
    assert interval_of(pipeline_of(Numbers()), run(**days)) is None, "of a cursor"


@cases("run_type", ["scheduled", "backfill"])
def test_params_that_a_dag_happens_to_have_send_no_run_of_its_schedule_to_another_interval(run_type: str) -> None:
    from airflow.sdk.api.datamodels._generated import DagRunType

    def of_dag(**conf: str) -> Context:
        bounds = "2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z"
        made = SimpleNamespace(run_type=DagRunType(run_type), conf=conf)
        return run(*bounds, data_interval_start=FIRST, data_interval_end=SECOND, dag_run=made)

    assert interval_of(ORDERS, of_dag()) == Interval(FIRST, SECOND)
    assert interval_of(pipeline_of(Numbers()), of_dag()) is None
    asked = of_dag(interval_start="2024-05-01T00:00:00Z", interval_end="2024-05-02T00:00:00Z")
    assert str(interval_of(ORDERS, asked)) == "[2024-05-01T00:00:00+00:00, 2024-05-02T00:00:00+00:00)"


@pytest.mark.fault("A8")
@cases(
    "context, found",
    [
        (run(), "this run has none"),
        (run(data_interval_start=None, data_interval_end=None), "this run has none"),
        (run(data_interval_start=FIRST, data_interval_end=FIRST), "is empty"),
        (run("2024-03-02T00:00:00Z", "2024-03-01T00:00:00Z"), "is empty"),
        (run("2024-03-01T00:00:00Z", None), "only one of the params"),
        (run(None, "2024-03-01T00:00:00Z"), "only one of the params"),
        (run("2024-03-01T00:00:00", "2024-03-02T00:00:00"), "has no time zone"),
        (run("yesterday", "2024-03-02T00:00:00Z"), "'yesterday', no ISO 8601"),
        (run(20240301, "2024-03-02T00:00:00Z"), "no ISO 8601"),
        (run({"$ne": None}, []), "no ISO 8601"),
        (run("0001-01-01T00:00:00+14:00", "2024-03-02T00:00:00Z"), "reaches beyond the years"),
        (run("2024-03-01T00:00:00Z", "9999-12-31T23:59:59-12:00"), "reaches beyond the years"),
    ],
)
def test_a_run_without_a_real_interval_is_refused_and_told_what_to_give(context: Context, found: str) -> None:
    with pytest.raises(IntervalMissing, match=found) as refused:
        interval_of(ORDERS, context)
    assert "interval_start" in str(refused.value) and "interval_end" in str(refused.value)


@pytest.mark.fault("L1")
def test_an_interval_in_the_params_of_a_cursor_pipeline_is_refused_and_not_ignored() -> None:
    for given in (run("2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z"), run(end="2024-03-02T00:00:00Z")):
        with pytest.raises(InvalidPipeline, match=r"its epochs are numbers.*\{interval_start"):
            interval_of(pipeline_of(Numbers()), given)


def test_every_task_says_which_interval_its_run_is_to_move(monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.airflow import operators

    seen: list[RunKey] = []
    monkeypatch.setattr(operators, "open_runtime", lambda *_: nullcontext())
    monkeypatch.setattr(operators, "_summarize", lambda _: {})
    monkeypatch.setattr(operators, "commit", lambda _, run: seen.append(run))
    task = SimpleNamespace(dag_id="orders", run_id="manual 1")
    for given in (run("2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z", ti=task), run("yesterday", ti=task)):
        operators.CommitOperator(task_id="commit", pipeline=ORDERS).execute(given)
    assert [str(one.interval) for one in seen] == ["[2024-03-01T00:00:00+00:00, 2024-03-02T00:00:00+00:00)", "None"]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs that `begin` is called for, which does nothing."""
    from lockstep.airflow import operators

    found: list[Any] = []
    monkeypatch.setattr(operators, "open_runtime", lambda *_: nullcontext())
    for name in ("migrate", "_summarize"):
        monkeypatch.setattr(operators, name, lambda _: {})
    monkeypatch.setattr(operators, "login", lambda _: "")
    monkeypatch.setattr(operators, "begin", lambda _, run, interval: found.append(run))
    return found


def execute_begin(conf: dict[str, Any]) -> None:
    from lockstep.airflow import operators

    task = SimpleNamespace(dag_id="orders", run_id="manual 1")
    context = run(data_interval_start=FIRST, data_interval_end=SECOND, ti=task)
    context["params"].update(conf)
    operators.BeginOperator(task_id="begin", pipeline=ORDERS).execute(context)


REQUESTED = {"lockstep_restate": "a corrected file", "lockstep_request": "2026-11"}


def test_only_a_conf_with_a_reason_restates(begun: list[Any]) -> None:
    why: dict[str, Any] = {"lockstep_restate": " a corrected file "}

    def begin(given: dict[str, Any]) -> tuple[Any, ...]:
        begun.clear()
        execute_begin(given)
        [one] = begun
        return one.restate, one.restore, one.input, one.epoch, one.replaces

    assert begin({}) == begin({"lockstep_restate": None, "lockstep_restore": None}) == (None,) * 5
    assert begin(REQUESTED) == ("a corrected file (request 2026-11)", None, None, None, None)
    assert begin(why) == ("a corrected file", None, None, None, None)
    assert begin({**why, "lockstep_restore": 7}) == ("a corrected file", 7, None, None, None)
    assert begin({**why, "lockstep_input": "frozen"}) == ("a corrected file", None, Input.FROZEN, None, None)
    assert begin({**why, "lockstep_epoch": 7, "lockstep_replaces": 8}) == ("a corrected file", None, None, 7, 8)
    begun.clear()
    for wish, said in REFUSED:
        with pytest.raises(RestateRefused, match=said):
            execute_begin({**why, **wish})
    for alone in ({"lockstep_input": "frozen"}, {"lockstep_epoch": 7}, {"lockstep_replaces": 7}):
        with pytest.raises(RestateRefused, match=r"input is|the epoch to restate|say why"):
            execute_begin(alone)
    with pytest.raises(RestateRefused, match="say why, with lockstep_restate"):
        execute_begin({"lockstep_restore": 7})
    with pytest.raises(RestateRefused):
        execute_begin({"lockstep_request": "alone"})
    assert begun == []


@pytest.mark.fault("R13")
@cases("key", ["lockstep_restat", "Lockstep_restate", "lockstep-restate", "lockstep_replan_reason"])
def test_a_mistyped_key_of_a_conf_is_refused_and_other_keys_are_the_users(begun: list[Any], key: str) -> None:
    begun.clear()
    with pytest.raises(RestateRefused, match=rf"'{key}' means nothing to Lockstep, which knows .* lockstep_restate,"):
        execute_begin({**REQUESTED, key: "a corrected file"})
    assert begun == []
    execute_begin({"restat": "mine"})
    assert len(begun) == 1


NONSENSE: list[Any] = [True, "", " ", {"orders": ""}, ["a"], 7, "x" * 2000]
NONSENSE += ["nul\0", "two\nlines", "\x1b[31mred", "\ud800"]
ODD_EPOCHS: list[Any] = ["7", True, 0, 1 << 63]
#: beside a reason
REFUSED: list[tuple[dict[str, Any], str]] = [
    *(({"lockstep_restate": wrong}, "to restate what is published say why") for wrong in NONSENSE),
    *(({"lockstep_restate": empty}, "restates nothing") for empty in ({}, {"orders": None})),
    *(({"lockstep_restore": wrong}, "number of an epoch") for wrong in (True, 0, "7", [7], 1.5)),
    *(({key: {"returns": 7}}, "names 'returns'") for key in ("lockstep_restore", "lockstep_epoch")),
    *(({"lockstep_input": wrong}, "input is") for wrong in ("thawed", ["frozen"])),
    *(({"lockstep_epoch": wrong}, "the epoch to restate") for wrong in ODD_EPOCHS),
    *(({"lockstep_replaces": wrong}, "the epoch to restate") for wrong in (10**30, "7")),
    ({"lockstep_request": 7}, "request"),
]


def test_only_a_conf_with_a_reason_replans(begun: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.airflow import operators

    monkeypatch.setattr(operators, "replan_for", lambda _, run, why, number: begun.append((run.interval, why, number)))

    def replanned(**conf: Any) -> list[Any]:
        begun.clear()
        execute_begin(conf)
        return begun[:-1]

    assert replanned() == replanned(lockstep_replan=None, lockstep_replan_epoch=7) == []
    assert replanned(lockstep_replan="a sink came") == [(Interval(FIRST, SECOND), "a sink came", None)]
    assert replanned(lockstep_replan="a sink came", lockstep_replan_epoch=7)[0][1:] == ("a sink came", 7)
    odd: tuple[dict[str, Any], ...] = (
        {"lockstep_replan": ["a"]},
        {"lockstep_replan": "two\nlines"},
        *({"lockstep_replan_epoch": number} for number in ("7", 0, 10**30)),
    )
    for nonsense in odd:
        with pytest.raises(IllegalTransition, match="replan"):
            replanned(**{"lockstep_replan": "a sink came", **nonsense})
        assert begun == []
    two = {"orders": ORDERS, "clicks": ORDERS}
    monkeypatch.setattr(operators.BeginOperator, "_pipelines_of_dag", lambda _: two)
    with pytest.raises(IllegalTransition, match="replan an epoch of one by `lockstep replan`"):
        replanned(lockstep_replan="a sink came")


def test_what_a_conf_asks_for_counts_where_airflow_keeps_it_out_of_the_params(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk import DAG, BaseOperator
    from airflow.sdk.definitions.param import process_params

    from lockstep.airflow import _run_conf

    monkeypatch.setenv("AIRFLOW__CORE__DAG_RUN_CONF_OVERRIDES_PARAMS", "False")

    def triggered(**conf: Any) -> Context:
        with DAG("orders", schedule=None, params={"resolve_entry": None}) as dag:
            task = BaseOperator(task_id="any")
        params = process_params(dag, task, conf, suppress_exception=False)
        assert params == {"resolve_entry": None}, "as Airflow does it"
        return cast("Context", {"params": params, "dag_run": SimpleNamespace(conf=conf)})

    bounds = {"interval_start": "2024-01-01T00:00:00Z", "interval_end": "2024-01-02T00:00:00Z"}
    assert interval_of(ORDERS, triggered(**bounds)) == Interval(FIRST, SECOND)
    with pytest.raises(InvalidPipeline, match="its epochs are numbers"):
        interval_of(pipeline_of(Numbers()), triggered(**bounds))
    asked = triggered(**REQUESTED, lockstep_restore=7, lockstep_replaces=8)
    found = _run_conf.with_restate_request(RunKey("orders", "manual"), asked, "orders", ["orders"])
    assert (found.restate, found.restore, found.replaces) == ("a corrected file (request 2026-11)", 7, 8)
    asked = triggered(lockstep_replan="a sink came", lockstep_replan_epoch=7)
    assert _run_conf.read_replan(asked, ["orders"]) == ("a sink came", 7)
    asked = triggered(pipeline="orders", resolve_epoch=7, resolve_sink="delays", resolve_entry=40)
    assert _run_conf.read_resolve_request("orders", asked) == (7, "delays", 40)
