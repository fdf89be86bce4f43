"""What the pipelines of the end-to-end tests read; a user's own tasks around groups, and what is told of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier

from lockstep.connections.names import absolute

Row = tuple[int, str, float]


def write_rows(file: Path, rows: Iterable[Row]) -> None:
    """An input, whole from the first look on."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text("id,day,amount\n" + "".join(f"{id},{day},{amount}\n" for id, day, amount in rows))
    unfinished.rename(file)


def rows_of(day: str) -> list[Row]:
    """What `extract` lands for it."""
    return [(number, day, number / 4) for number in range(5)]


def land(pipelines: list[str], day: str) -> None:
    """A day's file for each; FileNotFoundError while the file gates/<day>.lacking exists, as a system that is down."""
    if Path(absolute("gates"), f"{day}.lacking").exists():
        raise FileNotFoundError(day)
    for pipeline in pipelines:
        write_rows(Path(absolute("landing"), pipeline, f"{day}.csv"), rows_of(day))


def write(what: str, run_id: str, said: Any) -> None:
    """Each time a file, so that what comes twice is seen."""
    folder = Path(absolute("told"))
    folder.mkdir(exist_ok=True)
    number = len(list(folder.glob("*.json")))
    while True:
        try:
            with (folder / f"{number}.json").open("x") as file:
                json.dump({"what": what, "run": run_id, "said": said}, file, default=list)
            return
        except FileExistsError:
            number += 1


def tell_failure(context: Mapping[str, Any]) -> None:
    write("failure", context["run_id"], context["ti"].task_id)


async def tell_lateness(context: Mapping[str, Any]) -> None:
    """By the triggerer, when the deadline is missed."""
    write("late", context["dag_run"]["dag_run_id"], context["dag_run"]["dag_id"])


class Telling(BaseNotifier):
    """Somebody's."""

    template_fields = ("message",)

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message

    def notify(self, context: Any) -> None:
        write("notice", context["run_id"], self.message)
