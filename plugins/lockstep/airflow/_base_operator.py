"""A task that fails says why in one sentence, which comes last. How it came to that is for who asks for DEBUG."""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from lockstep.airflow._airflow import AirflowTaskTimeout, as_raised
from lockstep.airflow._lineage import Lineage, to_operator_lineage
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage

_log = logging.getLogger(__name__)


class LockstepOperator(BaseOperator):
    """Airflow logs what is raised with every frame and every cause: of Lockstep's errors only the sentence is left."""

    def execute(self, context: Context) -> Any:
        return self.tell(context)

    def tell(self, context: Context) -> Any:
        """`execute` for a task that is resumed, which Airflow lets nobody call but itself."""
        try:
            return self.perform(context)
        except AirflowTaskTimeout:
            limit = self.execution_timeout
            raise AirflowTaskTimeout(f"ended at its execution_timeout, {limit}: its next try goes on") from None
        except LockstepError as error:
            _log.debug("how it came to this", exc_info=True)
            failure = error
        raise as_raised(failure).with_traceback(None) from None  # out here nothing is chained to it

    @abstractmethod
    def perform(self, context: Context) -> Any:
        """What the task does."""

    # --- asked by the OpenLineage provider, if there is one ---

    lineage: Lineage | None = None  #: what the task has noted of its epochs

    def get_openlineage_facets_on_start(self) -> OperatorLineage[Any, Any]:
        """Which epoch it will be isn't known yet."""
        return to_operator_lineage(None)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        return to_operator_lineage(self.lineage)

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        """Nothing is shown by what has failed, as far as anybody knows."""
        return to_operator_lineage(replace(self.lineage, outputs=()) if self.lineage else None)


class DriverLog:
    """A hook's logger, which takes the lines of the driver down to DEBUG: they come without arguments, the hook's own
    (the command, the application's id) with some."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def info(self, event: str, *arguments: Any, **named: Any) -> None:
        (self._log.info if arguments or named else self._log.debug)(event, *arguments, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)
