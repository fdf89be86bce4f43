"""The single source of truth about epochs: PostgreSQL tables with guarded transitions."""

from lockstep.ledger.administration import migrate
from lockstep.ledger.ledger import Ledger
from lockstep.ledger.reader import LedgerReader

__all__ = ["Ledger", "LedgerReader", "migrate"]
