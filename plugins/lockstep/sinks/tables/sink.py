"""Rows into the tables of one database, exactly once: what is the same whatever database it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import ClassVar, Literal, TypeAlias, TypeVar

from lockstep.connections.names import Relation
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline
from lockstep.sinks.base import Sink
from lockstep.sinks.tables._two_phase import TwoPhaseTableSink
from lockstep.sinks.tables._write_ahead import WriteAheadTableSink
from lockstep.sinks.tables.open_sink import OpenTableSink
from lockstep.sinks.tables.target import TableTarget
from lockstep.sinks.tables.upserts import Keys, Mode, Upserts
from lockstep.sinks.values import SinkContext

ProtocolName: TypeAlias = Literal["two_phase", "write_ahead"]
OnNewColumns: TypeAlias = Literal["refuse", "add"]
OnMissingName: TypeAlias = Literal["refuse", "delete", "keep"]

Cursor = TypeVar("Cursor")


class TableSink(Sink):
    """Tables of one database, all of which show an epoch together. What the arguments mean is told by each database."""

    operational = frozenset({"lock_timeout", "on_missing"})
    default_schema: ClassVar[str | None] = None  #: of Lockstep's own tables; None: the connection's

    def __init__(
        self,
        name: str,
        *,
        tables: Mapping[str, str],
        connection: str,
        protocol: ProtocolName | None = None,
        create: bool = False,
        epoch_column: str | None = "lockstep_epoch",
        shared: bool = False,
        schema: str | None = None,
        lock_timeout: float = 10.0,
        mode: str = Mode.APPEND,
        key: Keys | None = None,
        order: str | None = None,
        deleted: str | None = None,
        on_new_columns: OnNewColumns = "refuse",
        on_missing: OnMissingName = "refuse",
    ) -> None:
        super().__init__(name)
        self.upserts = Upserts.of(name, tables, mode, key, order, deleted, on_missing)
        self.replaces = self.upserts is not None
        # an upsert that is prepared holds keys
        self.protocol: ProtocolName = protocol or ("write_ahead" if self.replaces else "two_phase")
        self.tables = {output: self._spelled(table) for output, table in tables.items()}
        self.connection = connection
        self.create, self.epoch_column, self.shared = create, epoch_column, shared
        self.lock_timeout = lock_timeout
        self.schema = self.default_schema if schema is None else schema
        self.on_new_columns: OnNewColumns = on_new_columns
        self._check_arguments()

    def _check_arguments(self) -> None:
        if self.protocol not in ("two_phase", "write_ahead"):
            raise InvalidPipeline(
                f"sink {self.name}: protocol={self.protocol!r} is neither 'two_phase' nor 'write_ahead'"
            )
        if self.on_new_columns not in ("refuse", "add"):
            raise InvalidPipeline(
                f"sink {self.name}: on_new_columns={self.on_new_columns!r} is neither 'refuse' nor 'add'"
            )
        if not self.lock_timeout > 0:
            raise InvalidPipeline(f"sink {self.name}: lock_timeout is {self.lock_timeout}, has to be above 0 seconds")
        self._require_distinct([self._relation(table) for table in self.tables.values()])
        if self.upserts is not None and self.shared:
            raise InvalidPipeline(
                f"sink {self.name}: mode='upsert' can't share a table: the epochs of two pipelines have no order"
            )
        if self.upserts is not None and self.epoch_column is None:
            raise InvalidPipeline(f"sink {self.name}: mode='upsert' needs an epoch_column: it is part of the order")

    def _require_distinct(self, relations: Collection[Relation]) -> None:
        if not relations or len(set(relations)) != len(relations):
            raise InvalidPipeline(f"sink {self.name}: give each output a table of its own, and at least one")

    # --- what each database does in its own way ---

    def _spelled(self, table: str) -> str:
        """How the plan names a table that was given as `table`."""
        return table

    @abstractmethod
    def _relation(self, table: str) -> Relation:
        """The table that `table` names; equal for two spellings of one table."""

    # --- identity ---

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.tables)

    def arguments(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "tables": dict(self.tables),
            "connection": self.connection,
            "protocol": self.protocol,
            "create": self.create,
            "epoch_column": self.epoch_column,
            "shared": self.shared,
            "schema": self.schema,
            "lock_timeout": self.lock_timeout,
            **(self.upserts.arguments() if self.upserts is not None else {}),
            **({"on_new_columns": self.on_new_columns} if self.on_new_columns != "refuse" else {}),
        }

    def writes_to(self) -> frozenset[str]:
        return frozenset(f"table {table} of connection {self.connection}" for table in self.tables.values())

    def lacks_deletes(self, output: str) -> bool:
        return self.upserts is not None and self.upserts.deleted is None

    @property
    def holds_keys(self) -> bool:
        """A prepared upsert makes others wait that have a key of its rows."""
        return self.replaces and self.protocol == "two_phase"

    @property
    def adds_columns(self) -> bool:
        """Whether tables get the columns that an output has and they lack."""
        return self.on_new_columns == "add"

    # --- open ---

    def _open_on(self, target: TableTarget[Cursor], context: SinkContext) -> OpenTableSink[Cursor]:
        if self.protocol == "two_phase":
            return TwoPhaseTableSink(self, target, create=self.create, shared=self.shared)
        return WriteAheadTableSink(self, target, create=self.create, shared=self.shared)
