"""Reports published ranges to their sources, for instance as offsets of a Kafka consumer group."""

from __future__ import annotations

import logging

from lockstep.epoch import Epoch
from lockstep.errors import LockstepError
from lockstep.protocol.hooks import Feature
from lockstep.protocol.runtime import Runtime

_log = logging.getLogger(__name__)


class SourceReports(Feature):
    """Calls each source's `report_published`. Nothing depends on it, so a failure is logged and cleanup goes on."""

    def cleaning(self, runtime: Runtime, epoch: Epoch) -> None:
        """A later generation of a cursor's epoch reports nothing: epochs behind it may be reported already."""
        if epoch.interval is None and epoch.generation is not None:
            return
        for name in runtime.definition.sources if runtime.definition else ():
            if (planned := epoch.plan.sources.get(name)) is None:
                continue
            try:
                with runtime.open_source(name, planned) as source:
                    source.report_published(planned.start, planned.end)
            except LockstepError as error:
                _log.warning("%s: the range could not be reported to source %s: %s", epoch, name, error)
