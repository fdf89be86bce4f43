"""How long sending an epoch takes at the least, known before the decision: afterwards it has `transaction_timeout`."""

from __future__ import annotations

import logging
import time

from lockstep.errors import PreflightRefused
from lockstep.sinks.kafka.records import Records

_log = logging.getLogger(__name__)

_SAMPLE = 20_000  #: records, of which it is measured what handing them over takes
#: Sending takes this many times as long as making the records, or more: the rest is the network's and the brokers'.
_USUALLY = 4


class Effort:
    """CPU time of this thread alone, which no load on the machine makes longer, and no publisher can do without."""

    def __init__(self) -> None:
        self._began = time.thread_time()
        self._sampling = 0.0
        self._sampled = self._rows = 0

    def note(self, records: Records) -> None:
        """After these were made."""
        self._rows += len(records)
        if self._sampled < _SAMPLE:
            began = time.thread_time()
            self._sampled += sum(1 for _ in records)
            self._sampling += time.thread_time() - began

    def least(self) -> float:
        """Seconds: to make all records, and one Python object of each, as the client wants them."""
        making = time.thread_time() - self._began - self._sampling
        return making + (self._sampling / self._sampled * self._rows if self._sampled else 0.0)

    def require_within(self, timeout: float, who: str, longer: str) -> None:
        """Raises `PreflightRefused` if the epoch could surely never be sent in one transaction; warns if it may not."""
        least = self.least()
        told = f"{who}: to make these {self._rows:,} records alone takes {least:.1f} s of CPU"
        if least > timeout:
            raise PreflightRefused(
                f"{told}, and brokers abort a transaction after transaction_timeout={timeout:g} s: the epoch could "
                f"never be published. Deploy a longer transaction_timeout, or {longer}; or give an epoch less"
            )
        if least * _USUALLY > timeout:
            _log.warning("%s, and sending takes longer: transaction_timeout=%g s may be too short", told, timeout)
