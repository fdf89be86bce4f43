"""A DAG run as Airflow sees it: task states that a person may change, a retry beside a task that still lives."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from lockstep.epoch import Interval, RunKey
from lockstep.errors import LockstepError
from lockstep.protocol.abort import abort
from lockstep.protocol.begin import begin
from lockstep.protocol.cleanup import cleanup
from lockstep.protocol.commit import commit, commit_together
from lockstep.protocol.prepare import prepare
from lockstep.protocol.publish import publish
from lockstep.protocol.stage import stage
from tests.simulation.world import World, spark_job

MOST_TRIES = 5


def decide_together(world: World, own: RunKey, others: list[RunKey]) -> object:
    """The commit of a pack: what becomes of the own epoch is this task's, the others' tasks find theirs decided."""
    runtime = world.runtime()
    known = [other for other in others if runtime.ledger.find_run(other) is not None]
    found = commit_together(runtime, [own, *known])[0]
    if isinstance(found, LockstepError):
        raise found
    return found


class Status(StrEnum):
    """Of one task."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class DagRun:
    """begin → stage → prepare of each sink → commit → publish of each → cleanup, and abort when one failed."""

    def __init__(
        self,
        number: int,
        interval: Interval | None,
        sinks: list[str],
        restate: str | None = None,
        restore: int | None = None,
        epoch: int | None = None,
    ) -> None:
        self.name = f"run {number}"
        self.key = RunKey("simulation", self.name, restate=restate, restore=restore, epoch=epoch)
        self.interval = interval
        prepares, publishes = ([f"{role}.{sink}" for sink in sinks] for role in ("prepare", "publish"))
        self._phases = [["begin"], ["stage"], prepares, ["commit"], publishes, ["cleanup"]]
        self.status = {task: Status.WAITING for phase in self._phases for task in phase}
        self.tries = dict.fromkeys(self.status, 0)
        self.aborted = False

    @property
    def tasks(self) -> list[str]:
        return list(self.status)

    def ready(self) -> list[str]:
        """What the scheduler may start now."""
        if Status.FAILED in self.status.values():
            return [] if self.aborted else ["abort"]
        for phase in self._phases:
            waiting = [task for task in phase if self.status[task] is Status.WAITING]
            if waiting or any(self.status[task] is not Status.DONE for task in phase):
                return waiting
        return []

    @property
    def over(self) -> bool:
        if Status.FAILED in self.status.values():
            return self.aborted
        return all(status is Status.DONE for status in self.status.values())

    def start(self, task: str) -> None:
        if task == "abort":
            self.aborted = True
        else:
            self.status[task] = Status.RUNNING
            self.tries[task] += 1

    def end(self, task: str, status: Status) -> None:
        """A task has ended, or is taken for dead. Too many tries fail it."""
        if task in self.status:
            failed = status is Status.WAITING and self.tries[task] >= MOST_TRIES
            self.status[task] = Status.FAILED if failed else status

    def clear(self, task: str) -> None:
        """With its downstream, as a person does it."""
        for other in self.tasks[self.tasks.index(task) :]:
            self.status[other], self.tries[other] = Status.WAITING, 0
        self.aborted = False

    def work(self, world: World, task: str) -> Callable[[], object]:
        """What the task's process runs."""
        runtime, (role, _, sink) = world.runtime(), task.partition(".")
        return {
            "begin": lambda: begin(runtime, self.key, self.interval),
            "stage": lambda: stage(runtime, self.key, spark_job),
            "prepare": lambda: prepare(runtime, self.key, sink),
            "commit": lambda: commit(runtime, self.key),
            "publish": lambda: publish(runtime, self.key, sink),
            "cleanup": lambda: cleanup(runtime, self.key),
            "abort": lambda: abort(runtime, self.key, "a task failed"),
        }[role]
