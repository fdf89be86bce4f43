"""What Airflow's triggerer does for tasks that wait: it looks for files, and runs no code of a pipeline or launcher.

What it finds is a hint and no more. The task looks for itself, whoever wakes it, and goes by what it sees.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from lockstep.sources.files.looking import is_anything_at
from lockstep.wal.request import has_ended

_log = logging.getLogger(__name__)
_SHARE = 0.1  #: of the time that was waited already: how long until it looks again


class FilesTrigger(BaseTrigger):
    """Fires with those of `places` that a file is at, as soon as there is one; with none of them at `until`.

    `places`: absolute paths or patterns, mounted, of an object store or of HDFS, looked at with the triggerer's own
    environment. `since`, `until`: ISO 8601 with a time zone; the wait's beginning, and its end, whoever else dies
    meanwhile: another triggerer goes on by the same dates. `every`: seconds from look to look at first; later it is a
    tenth of what was waited.
    """

    def __init__(self, places: Sequence[str], since: str, until: str, every: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.places, self.since, self.until, self.every = list(places), since, until, every

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {"places": self.places, "since": self.since, "until": self.until, "every": self.every}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        since, until = datetime.fromisoformat(self.since), datetime.fromisoformat(self.until)
        while not (places := await self._look()) and (now := datetime.now(UTC)) < until:
            pause = max(self.every, _SHARE * (now - since).total_seconds())
            await asyncio.sleep(min(pause, (until - now).total_seconds()))
        yield TriggerEvent(places)  # type: ignore[no-untyped-call]

    async def _look(self) -> list[str]:
        try:
            return await asyncio.to_thread(lambda: [place for place in self.places if self.sees(place)])
        except Exception as error:  # whatever it is, the task is woken in time and says what is wrong with its input
            _log.warning("can't look for files, so the task does when its pause is over: %s", type(error).__name__)
            return []

    def sees(self, place: str) -> bool:
        return is_anything_at(place)


class JobTrigger(FilesTrigger):
    """The same for jobs that were left to themselves. `places`: addresses of their requests, beside which each leaves
    its last word."""

    def sees(self, place: str) -> bool:
        return has_ended(place)
