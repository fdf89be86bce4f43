"""Names of Avro's types, which decide whether what a writer meant is what a reader asks for.

By Avro's rules records, enums and fixed types match by name, or by an alias that the reader's has. Its implementation
(1.12, `org.apache.avro.Resolver`) compares no names of records, and of the others only the last part: where a reader's
fields have defaults, a record of any other type becomes a good one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lockstep.epoch import Json

_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_PARTS = {"array": "items", "map": "values"}
_NOT_READ = ("aliases", "default")  #: of a writer's schema nobody asks for them


def of_another_type(writer: str, reader: str) -> str | None:
    """What the schemas' values are, in words, if one of the two is a record and the other isn't that record."""
    found, wanted = _Schema(writer), _Schema(reader)
    if not (found.is_record or wanted.is_record) or wanted.namesake(found, found.root, [wanted.root]) is not None:
        return None
    return f"{found.told}, and not {wanted.told}"


def telling_names(writer: str, reader: str) -> str:
    """The writer's schema, of the same bytes, so that Avro resolves the reader's against it by names: a named type has
    the reader's name for it, and is one that nothing resolves to where the reader wants another one, in a union, too.
    """
    found, wanted = _Schema(writer), _Schema(reader)
    return json.dumps(_Joint(found, wanted).written(found.root, wanted.root))


class _Schema:
    """`types`: the named ones, by full name, with full names as aliases. In `root` and in them, the full name stands in
    the place of each."""

    def __init__(self, text: str) -> None:
        self.types: dict[str, Json] = {}
        self.root = self._taken_apart(json.loads(text), "")

    @property
    def is_record(self) -> bool:
        return self._kind(self.root) == "record"

    @property
    def told(self) -> str:
        """What the values are, for messages."""
        if isinstance(self.root, list):
            return "union"
        return self.root if isinstance(self.root, str) else str(self.root["type"])

    def _kind(self, name: Json) -> str | None:
        """Of a named type; None if it is none."""
        return self.types[name]["type"] if isinstance(name, str) and name in self.types else None

    def unit(self, schema: Json) -> tuple[Json, ...] | None:
        """What a number or bytes count: the logical type, and a decimal's scale."""
        found = self.types.get(schema) if isinstance(schema, str) else schema
        return (kind, found.get("scale", 0)) if isinstance(found, dict) and (kind := found.get("logicalType")) else None

    def namesake(self, writer: _Schema, name: Json, offered: Sequence[Json]) -> str | None:
        """Which of the types that are offered a writer's type of this name is, or was by an alias; None if none is."""
        alike = [one for one in offered if self._kind(one) is not None and self._kind(one) == writer._kind(name)]
        return next(
            (one for one in alike if one == name),
            next((one for one in alike if name in self.types[one]["aliases"]), None),
        )

    def _taken_apart(self, schema: Json, space: str) -> Json:
        match schema:
            case str():
                full = _full_name(schema, space)
                return schema if schema in _PRIMITIVE or full not in self.types else full
            case list():
                return [self._taken_apart(one, space) for one in schema]
            case {"type": str(kind), "name": str(name)} if kind in _NAMED:
                own = schema.get("namespace")
                return self._named(schema, _full_name(name, space if own is None else own))
            case {"type": "array" | "map" as kind}:
                return {**schema, _PARTS[kind]: self._taken_apart(schema[_PARTS[kind]], space)}
            case {"type": str(kind)} if kind in _PRIMITIVE:
                return schema
        return self._taken_apart(schema["type"], space)

    def _named(self, schema: Mapping[str, Json], full: str) -> str:
        space = full.rpartition(".")[0]
        aliases = [_full_name(alias, space) for alias in schema.get("aliases", ())]
        found = self.types[full] = {**schema, "aliases": aliases}  # known to its own fields
        if "fields" in found:
            found["fields"] = [{**one, "type": self._taken_apart(one["type"], space)} for one in found["fields"]]
        return full


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


class _Joint:
    """A writer's schema beside the reader's. Each of its types is written once for each type that it is read as."""

    def __init__(self, writer: _Schema, reader: _Schema) -> None:
        self._writer, self._reader = writer, reader
        self._names: dict[tuple[str, str | None], str] = {}
        self._strange = 0

    def written(self, writer: Json, reader: Json | None) -> Json:
        """`reader`: None where nothing is read of it, or nothing that Avro would take it for."""
        offered = reader if isinstance(reader, list) else [reader]
        units = [unit for one in offered if (unit := self._reader.unit(one)) is not None]
        if units and self._writer.unit(writer) not in (None, *units):
            return self._nothing()  # Avro takes one number for the other
        match writer:
            case list():
                return [self.written(one, reader) for one in writer]
            case str() if writer in self._writer.types:
                found = None if reader is None else self._reader.namesake(self._writer, writer, offered)
                return self._named(writer, found) if reader is None or found is not None else self._nothing()
            case {"type": "array" | "map" as kind}:
                part = _PARTS[kind]
                alike = (one[part] for one in offered if isinstance(one, dict) and one["type"] == kind)
                return {**writer, part: self.written(writer[part], next(alike, None))}
        return writer

    def _nothing(self) -> Json:
        """A type that nothing resolves to: whoever comes to a value of it fails."""
        self._strange += 1
        return {"type": "fixed", "name": f"_lockstep_strange_{self._strange}", "namespace": "", "size": 1}

    def _named(self, name: str, reader: str | None) -> Json:
        if (known := self._names.get((name, reader))) is not None:
            return known
        full = f"_lockstep_skipped.{name}" if reader is None else reader
        if full in self._names.values():  # the reader's, by an alias
            full = f"_lockstep_{len(self._names)}.{full}"
        self._names[name, reader] = full
        space, _, last = full.rpartition(".")
        found = {key: value for key, value in self._writer.types[name].items() if key not in _NOT_READ}
        found |= {"name": last, "namespace": space}
        if "fields" in found:
            wanted = self._reader.types[reader]["fields"] if reader is not None else []
            found["fields"] = [self._field(field, wanted) for field in found["fields"]]
        return found

    def _field(self, field: Mapping[str, Json], wanted: Sequence[Mapping[str, Json]]) -> Json:
        name = field["name"]
        exact = (one["type"] for one in wanted if one["name"] == name)
        alias = (one["type"] for one in wanted if name in one.get("aliases", ()))
        kept = {key: value for key, value in field.items() if key not in _NOT_READ}
        return {**kept, "type": self.written(field["type"], next(exact, next(alias, None)))}
