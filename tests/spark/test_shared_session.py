"""The session that a pipeline's epochs share: nothing of one stays in it, and none ends what another one does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.plan import LogicalPlan

from lockstep.compute._counting import ObservedFrame
from lockstep.compute._local_rows import VARIABLE
from lockstep.compute.stage import launch_request
from lockstep.errors import StageFailed
from lockstep.pipeline import Pipeline
from lockstep.spark import session as sessions
from lockstep.spark.session import REQUIRED, cancel
from lockstep.spark.shared_session import SharedSession, session_id
from lockstep.wal.request import ERROR, RESULT
from tests.spark.pipelines import pipeline_of, slowly
from tests.spark.staged import csv, request_of, rows_in
from tests.spark.test_drivers import GOOD, NOON, asked
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Transform = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Epochs:
    """Epochs of one pipeline, each by `launch_request`, and the sessions in which they ran."""

    def __init__(self, url: str, home: Path) -> None:
        self.url, self.home = url, home
        self.sessions: list[str] = []
        self.name = (home / "staging").parent.as_uri()

    def stage(self, transform: Transform | None = None, source: Any = None) -> list[dict[str, Any]]:
        found = source or csv(self.home, GOOD)
        return rows_in(self.launch(pipeline_of(found, transform) if transform else pipeline_of(found)) / "rows")

    def launch(self, pipeline: Pipeline, started: Callable[[Any, int], object] | None = None) -> Path:
        request = request_of(self.home, pipeline)
        folder = asked(request)

        def note(spark: SparkSession, token: int) -> None:
            self.sessions.append(spark.session_id)  # type: ignore[attr-defined]
            if started is not None:
                started(spark, token)

        launch_request(f"{request.folder}/_request.json", self.url, pipeline, {}, note)
        return folder

    @property
    def shared(self) -> str:
        return session_id(self.name)


@pytest.fixture
def epochs(spark_connect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Epochs:
    """None is begun in another half hour than the one before."""
    monkeypatch.setattr("lockstep.spark.shared_session.LIFETIME", 10**12)
    return Epochs(spark_connect, tmp_path)


def viewing(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    inputs["input"].createOrReplaceTempView("left_behind")
    return {"rows": inputs["input"]}


def registering(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    inputs["input"].sparkSession.udf.register("left_behind", lambda: 1)
    return {"rows": inputs["input"]}


def stopping(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    inputs["input"].sparkSession.interruptAll()
    return {"rows": inputs["input"]}


def caching(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    return {"rows": inputs["input"].cache()}


def catching(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    try:
        inputs["input"].createOrReplaceTempView("left_behind")
    except BaseException:
        return {"rows": inputs["input"].limit(0)}
    return {"rows": inputs["input"]}


def joining_many(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    """With rows of its own, so many that they aren't sent in the plan."""
    spark = inputs["input"].sparkSession
    spark_rows = [(number, "x" * 1000) for number in range(5000)]
    return {"rows": inputs["input"].join(spark.createDataFrame(spark_rows, "id BIGINT, more STRING"), "id")}


def asking(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
    spark = inputs["input"].sparkSession
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.sql("SELECT 2 AS two").collect()[0].two == inputs["input"].count()
    return {"rows": inputs["input"]}


def test_a_file_that_was_corrected_is_read_whole_by_another_process_in_the_session(
    epochs: Epochs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process numbers its plans from 0: those of the one before are equal to its own."""
    for rows in (2, 50):
        monkeypatch.setattr(LogicalPlan, "_nextPlanId", 0)
        text = "id,name,at\n" + "".join(f"{number},x,{NOON}\n" for number in range(rows))
        assert len(epochs.stage(source=csv(epochs.home, text))) == rows
    assert set(epochs.sessions) == {epochs.shared}


def test_epochs_of_a_pipeline_run_in_one_session(epochs: Epochs) -> None:
    assert [len(epochs.stage()), len(epochs.stage(asking)), len(epochs.stage(joining_many))] == [2, 2, 2]
    assert epochs.sessions == [epochs.shared] * 3


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "transform",
    [viewing, registering, stopping, caching, catching],
    ids=lambda t: t.__name__,
)
def test_a_transform_that_changes_its_session_gets_one_of_its_own(epochs: Epochs, transform: Transform) -> None:
    assert len(epochs.stage(transform)) == 2
    assert epochs.sessions[0] == epochs.shared
    assert len(epochs.sessions) == 2
    assert epochs.sessions[1] != epochs.shared
    assert len(epochs.stage(transform)) == 2
    assert epochs.shared not in epochs.sessions[2:]  # it isn't tried again
    spark: Any = SharedSession(epochs.url, epochs.name, REQUIRED).join()
    try:
        with pytest.raises(PySparkException, match="left_behind"):
            spark.table("left_behind").collect()
        with pytest.raises(PySparkException, match="left_behind"):
            spark.sql("SELECT left_behind()").collect()
    finally:
        spark.stop()


def test_a_session_that_the_server_has_ended_is_replaced(epochs: Epochs) -> None:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    epochs.stage()
    ConnectSession.builder.remote(f"{epochs.url}/;session_id={epochs.shared}").create().stop()
    assert len(epochs.stage()) == 2
    assert epochs.sessions[0] == epochs.shared
    assert epochs.sessions[1] != epochs.shared


def test_what_an_epoch_keeps_on_the_server_goes_with_it(epochs: Epochs) -> None:
    def keeping(inputs: Mapping[str, DataFrame]) -> Mapping[str, DataFrame]:
        frames.append(inputs["input"].localCheckpoint())
        raise ConnectionError("not now")

    frames: list[DataFrame] = []
    with pytest.raises(StageFailed, match="not now"):
        epochs.stage(keeping)
    spark: Any = SharedSession(epochs.url, epochs.name, REQUIRED).join()
    try:
        plan: Any = frames[0]._plan
        plan._spark_session = spark
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

        with pytest.raises(PySparkException, match=r"DATAFRAME_NOT_FOUND|NO_DATAFRAME|No DataFrame|not found"):
            ConnectFrame(plan, spark).collect()
    finally:
        spark.stop()


def test_epochs_that_run_at_once_are_cancelled_one_by_one(epochs: Epochs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")  # where Spark writes, it shows when it has begun
    folders: list[Path] = []
    running: list[tuple[Any, int]] = []
    raised: list[BaseException] = []

    def run(pipeline: Pipeline) -> None:
        try:
            epochs.launch(pipeline, lambda spark, token: running.append((spark, token)))
        except BaseException as error:
            raised.append(error)

    source = csv(epochs.home, GOOD)
    threads = [threading.Thread(target=run, args=(pipeline_of(source, slowly(1.5)),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    until(lambda: len(list(epochs.home.glob("staging/*/rows/_temporary"))) == 2)
    assert [spark.session_id for spark, _ in running] == [epochs.shared] * 2
    cancel(*running[0])
    for thread in threads:
        thread.join(60)
    folders = sorted(epochs.home.glob("staging/*"))
    assert [type(error) for error in raised] == [StageFailed]
    by_token = {int(folder.name): folder for folder in folders}
    cancelled, finished = by_token[running[0][1]], by_token[running[1][1]]
    assert (cancelled / ERROR).exists()
    assert not (cancelled / RESULT).exists()
    assert len(rows_in(finished / "rows")) == 2


def test_kept_rows_are_of_the_session_that_keeps_them_whichever_is_active(
    session: SparkSession, spark_connect: str
) -> None:
    """The Connect client takes the session of a checkpoint's answer from the thread that asks."""
    with sessions.session(spark_connect) as other, sessions.active(other):
        kept = ObservedFrame.of(session.range(3).toDF("id"), rows="count(1)").checkpoint()
        assert kept.sparkSession is session
        assert sorted(row.id for row in kept.collect()) == [0, 1, 2]
        assert type(session).active() is other
