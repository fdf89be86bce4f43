"""The only truth about epochs: Postgres tables behind guarded transitions."""

from lockstep.ledger.administration import migrate
from lockstep.ledger.ledger import Ledger
from lockstep.ledger.reader import LedgerReader

__all__ = ["Ledger", "LedgerReader", "migrate"]
