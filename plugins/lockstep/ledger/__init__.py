"""The only truth about epochs: Postgres tables behind guarded transitions."""

from lockstep.ledger._reader import LedgerReader
from lockstep.ledger.ledger import Ledger
from lockstep.ledger.migrations import migrate

__all__ = ["Ledger", "LedgerReader", "migrate"]
