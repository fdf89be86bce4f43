"""The registry's schemas by which an epoch's keys and values are written; found or registered before the vote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from lockstep.connections.kafka.schema_registry import SchemaRegistry
from lockstep.sinks.kafka._avro import AvroReaders, AvroWriter, schema_of, type_of

Subjects = Mapping[str, str]  #: by topic


@dataclass(frozen=True)
class Writers:
    """The Avro writers of values and keys, by topic; empty for a part that isn't Avro."""

    values: Mapping[str, AvroWriter]
    keys: Mapping[str, AvroWriter]

    def to_text(self) -> str:
        """Return them as JSON for the vote, so that publishing doesn't need the registry."""
        schemas = {writer.id: writer.text for part in (self.values, self.keys) for writer in part.values()}
        ids = [{topic: writer.id for topic, writer in part.items()} for part in (self.values, self.keys)]
        return json.dumps({"schemas": schemas, "values": ids[0], "keys": ids[1]}, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> Writers:
        fields = json.loads(text)
        writers = {int(id): AvroWriter(int(id), schema) for id, schema in fields["schemas"].items()}
        values, keys = ({topic: writers[id] for topic, id in fields[part].items()} for part in ("values", "keys"))
        return cls(values, keys)


@dataclass(frozen=True)
class Schemas:
    """The schemas of a sink. `connect`: returns the registry; publishing works without its login. `values`, `keys`: the
    subjects of the parts that are Avro. `register`: make a schema of the rows and register it; otherwise the subject's
    newest schema has to fit."""

    connect: Callable[[], SchemaRegistry]
    values: Subjects
    keys: Subjects
    register: bool

    @cached_property
    def registry(self) -> SchemaRegistry:
        return self.connect()

    def require_there(self) -> None:
        """Raise the asker's `refused` for a missing subject, unless schemas are registered."""
        if not self.register:
            for subject in self._subjects:
                self.registry.latest(subject)

    def find(self, output: str, rows: pa.Schema, key: pa.Field | None) -> Writers:
        """Return the writers. `rows`: the columns of a value; `key`: the column of the key. Raises the asker's
        `refused` with every column that doesn't fit, and what the registry raises."""
        if self.values and not len(rows):
            self._require_none(f"output {output}", ["no column is left for the value"])
        value_type, leave_out = pa.struct(list(rows)), frozenset({key.name} if key is not None else ())
        values = {
            subject: self._writer(subject, schema_of(rows, output), value_type, leave_out, output)
            for subject in sorted(set(self.values.values()))
        }
        keys = {
            subject: self._writer(subject, type_of(key), key.type, frozenset(), output)
            for subject in sorted(set(self.keys.values()))
            if key is not None
        }
        return Writers(
            {topic: values[subject] for topic, subject in self.values.items()},
            {topic: keys[subject] for topic, subject in self.keys.items()},
        )

    def readers(self) -> AvroReaders:
        """Return readers of everything that was written under these subjects."""
        return AvroReaders(self.registry.schemas_of(self._subjects))

    @property
    def _subjects(self) -> list[str]:
        return sorted({*self.values.values(), *self.keys.values()})

    def _writer(
        self,
        subject: str,
        schema_and_faults: tuple[str, list[str]],
        dtype: pa.DataType,
        leave_out: frozenset[str],
        output: str,
    ) -> AvroWriter:
        text, faults = schema_and_faults
        if self.register:
            self._require_none(f"output {output} has no schema", faults)
            registered = self.registry.register(subject, text)
        else:
            registered = self.registry.latest(subject)
        writer = AvroWriter(registered.id, registered.schema)
        try:
            misfits = list(writer.faults(dtype, leave_out))
        except Exception as error:  # whatever fastavro raises for a schema that it can't parse
            misfits = [f"it can't be parsed: {type(error).__name__}"]
        self._require_none(f"output {output} doesn't fit schema {registered.id} of subject {subject}", misfits)
        return writer

    def _require_none(self, what: str, faults: Iterable[str]) -> None:
        if text := "; ".join(faults):
            raise self.registry.who.refused(f"{self.registry.who.name}: {what}: {text}")
