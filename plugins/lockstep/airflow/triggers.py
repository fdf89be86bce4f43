"""What Airflow's triggerer polls for tasks that wait: files and ends of jobs. It runs no code of a pipeline or
launcher.

Its results are hints: the task looks itself when it is woken, and acts only on what it sees.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from lockstep.sources.files.paths import is_anything_at
from lockstep.wal.request import has_ended

_log = logging.getLogger(__name__)
_SHARE = 0.1  #: of the time waited so far: pause until the next poll


class FilesTrigger(BaseTrigger):
    """Fires as soon as there is a file at one of `places`, with those that have one, or at `until` with none.

    `places`: absolute paths or patterns, mounted, of an object store or of HDFS, accessed with the triggerer's own
    environment. `since`, `until`: start and end of the wait, ISO 8601 with a time zone; another triggerer can
    continue with them. `every`: seconds between polls at first; later a tenth of the time waited.
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
        except Exception as error:  # the task is woken in time and reports what is wrong
            _log.warning("can't poll for files, the task looks when its pause is over: %s", type(error).__name__)
            return []

    def sees(self, place: str) -> bool:
        return is_anything_at(place)


class JobTrigger(FilesTrigger):
    """Fires when a detached job has ended. `places`: addresses of the jobs' requests, next to which each writes its
    result."""

    def sees(self, place: str) -> bool:
        return has_ended(place)
