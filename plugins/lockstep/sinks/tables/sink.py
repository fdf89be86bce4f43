"""The description of a sink of tables: arguments, their checks, and how it opens on a database's dialect."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import ClassVar, Literal, TypeAlias

from lockstep.connections.names import Relation
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline
from lockstep.sinks.base import Sink
from lockstep.sinks.tables.dialect import Dialect
from lockstep.sinks.tables.open_sink import OpenTableSink, TwoPhaseTableSink, WriteAheadTableSink
from lockstep.sinks.tables.output import OpenOutput
from lockstep.sinks.tables.target import OpenTarget
from lockstep.sinks.tables.upserts import Keys, Mode, Upserts
from lockstep.sinks.values import SinkContext

ProtocolName: TypeAlias = Literal["two_phase", "write_ahead"]
OnNewColumns: TypeAlias = Literal["refuse", "add"]
OnMissingName: TypeAlias = Literal["refuse", "delete", "keep"]


class TableSink(Sink):
    """Tables of one database, all of which show an epoch in the same transaction. The subclass of each database
    documents the arguments."""

    operational = frozenset({"lock_timeout", "on_missing"})
    default_schema: ClassVar[str | None] = None  #: of Lockstep's own tables; None: the connection's
    default_table_schema: ClassVar[str] = "the connection's"  #: of tables whose name has none, before it is connected
    dialect: ClassVar[type[Dialect]]

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

    def _spelled(self, table: str) -> str:
        """The plan's name of a table that was given as `table`."""
        return table

    def _relation(self, table: str, schema: str | None = None) -> Relation:
        """The table that `table` names, in `schema` unless it names one; equal for two spellings of one table."""
        return Relation.parse(table, schema or self.default_table_schema)

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
        """True for prepared upserts: other transactions wait for the keys of their rows."""
        return self.replaces and self.protocol == "two_phase"

    @property
    def adds_columns(self) -> bool:
        """True if tables get the columns that an output has and they lack."""
        return self.on_new_columns == "add"

    @property
    def loads_early(self) -> bool:
        return self.dialect.loads_early and self.protocol == "two_phase" and not self.replaces

    # --- open ---

    @abstractmethod
    def _connect(self, context: SinkContext) -> Dialect:
        """The database that `context` leads to, as this sink uses it."""

    def open(self, context: SinkContext) -> OpenTableSink:
        dialect = self._connect(context)
        relations = {output: self._relation(table, dialect.default_schema) for output, table in self.tables.items()}
        self._require_distinct(relations.values())  # "t" and "database.t" may be one
        outputs = {
            output: OpenOutput(dialect, output, relation, self.epoch_column, self.upserts, self.adds_columns)
            for output, relation in relations.items()
        }
        kind = TwoPhaseTableSink if self.protocol == "two_phase" else WriteAheadTableSink
        return kind(self, OpenTarget(dialect, outputs), create=self.create, shared=self.shared)
