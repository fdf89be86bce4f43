"""What the bytes of Kafka's keys and values are, as SQL expressions that decode them and tell what can't be decoded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from lockstep.definition.ddl import literal
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline
from lockstep.sources._strict import Strict, has_more_json, plain_text, tame_json
from lockstep.sources.records import BAD, JSON_LOCALE

#: Behind the bytes stands their hash when they are decoded, as one field more: who doesn't find it there has read too
#: little of them or too much, and bytes that are left over are as malformed as those that are missing.
_END = "_lockstep_end"
#: Gives what stands in the bytes, a mapping by column, or raises.
Function = Callable[[bytes], Any]
_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_PREFIX = 5  #: bytes
_VALUE = "value"  #: what is in a record of two that carries the hash, where the bytes aren't a record


class PartEncoding(StrEnum):
    """What the bytes of a key or a value are."""

    BYTES = "bytes"
    STRING = "string"  #: UTF-8
    JSON = "json"  #: one object
    AVRO = "avro"  #: binary, without a container; with a schema registry's prefix where there is one
    FUNCTION = "module:function"  #: whatever a Python function makes of them


@dataclass(frozen=True)
class Decoding:
    """One of a record's two parts. `schema`: Spark DDL for JSON and what a function gives, the writer's Avro schema as
    JSON for Avro. `function`: its `module:name`. `writers`: of Avro in a schema registry's wire format, its schemas by
    id; `schema` is the reader's then."""

    column: str
    encoding: PartEncoding
    schema: str
    function: str = ""
    writers: Mapping[int, str] | None = None

    @classmethod
    def of(cls, where: str, column: str, encoding: str, schema: str | None) -> Decoding:
        """Raises `InvalidPipeline`."""
        function = encoding if _REFERENCE.fullmatch(encoding) and encoding not in tuple(PartEncoding) else ""
        kind = PartEncoding.FUNCTION if function else encoding
        if kind not in tuple(PartEncoding) or (kind == PartEncoding.FUNCTION and not function):
            raise InvalidPipeline(f"{where}: {column}={encoding!r} is none of {', '.join(PartEncoding)}")
        needs = kind in (PartEncoding.JSON, PartEncoding.AVRO, PartEncoding.FUNCTION)
        if needs != (schema is not None):
            raise InvalidPipeline(
                f"{where}: {column}_schema goes with {column}='json' or 'avro', or with a function, and only with them"
            )
        if kind == PartEncoding.AVRO:
            _require_avro(where, column, schema or "")
        if function and plain_text(schema or "") != schema:
            raise InvalidPipeline(f"{where}: {column}_schema: a function's texts have no checked length: say STRING")
        if kind == PartEncoding.JSON:
            _ = Strict(schema or "", "json").schema  # or a type that can't be checked is refused only by Spark's job
        return cls(column, PartEncoding(kind), schema or "", function)

    @property
    def may_fail(self) -> bool:
        return self.encoding is not PartEncoding.BYTES

    @property
    def added_field(self) -> str | None:
        """The field of a decoded record that tells whether it was one, if there is such a field."""
        match self.encoding:
            case PartEncoding.JSON:
                return BAD
            case PartEncoding.AVRO:
                return _END
            case _:
                return None

    @property
    def decode_sql(self) -> str:
        """The part, decoded, with the `added_field`."""
        match self.encoding:
            case PartEncoding.BYTES:
                return self.column
            case PartEncoding.STRING:
                return self._text
            case PartEncoding.JSON:
                options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD, **JSON_LOCALE}
                pairs = ", ".join(literal(text) for pair in options.items() for text in pair)
                text = tame_json(self._strict.schema, self._text, pairs)
                return f"from_json({text}, {literal(f'{self._strict.schema}, {BAD} STRING')}, map({pairs}))"
            case PartEncoding.AVRO if self.writers is None:
                ended = f"concat({self.column}, unhex({self._hash}))"
                return f"from_avro({ended}, {literal(_ended(self.schema))}, map('mode', 'PERMISSIVE'))"
            case PartEncoding.AVRO:
                return self._registered_sql
            case PartEncoding.FUNCTION:
                return f"{self.given}.found"

    def fault_sql(self, decoded: str) -> str:
        """Whether the bytes aren't what they should be, as an SQL condition; no bytes are no fault."""
        failed = f"({self.column} IS NOT NULL AND {decoded} IS NULL)"
        match self.encoding:
            case PartEncoding.BYTES:
                return "false"
            case PartEncoding.STRING:
                return self._is_no_text
            case PartEncoding.JSON:  # its parser puts a replacement in the place of what is no UTF-8
                more = f"({self.column} IS NOT NULL AND {has_more_json(self._text)})"
                wrong = f"{decoded}.{BAD} IS NOT NULL OR {failed} OR {self._is_no_text} OR {more}"
                return f"({wrong} OR {self._strict.changed(decoded)})"
            case PartEncoding.AVRO:
                found, text = f"{decoded}.{_END} = unhex({self._hash})", f"to_json({decoded})"
                if (wide := _widened(self.schema)) != json.loads(self.schema):
                    found += f" AND {text} = to_json({replace(self, schema=json.dumps(wide)).decode_sql})"
                if '"string"' in self.schema or '"map"' in self.schema:
                    found += f" AND NOT contains({text}, '\ufffd')"  # in the place of bytes that are no text
                return f"({self.column} IS NOT NULL AND NOT coalesce({found}, false))"
            case PartEncoding.FUNCTION:
                return f"({self.given}.why IS NOT NULL)"

    @cached_property
    def _others(self) -> dict[int, str]:
        """The writers' schemas that are of another type than the reader's, by id: of what, in words."""
        found = {id: of_another_type(writer, self.schema) for id, writer in (self.writers or {}).items()}
        return {id: told for id, told in found.items() if told is not None}

    @property
    def _registered_sql(self) -> str:
        """By the writer's schema, which the prefix names, as the reader's schema has it."""
        alike = {id: writer for id, writer in (self.writers or {}).items() if id not in self._others}
        reader = literal(_ended(self.schema))
        options = f"map('mode', 'PERMISSIVE', 'avroSchema', {reader})"
        body = f"concat(substring({self.column}, {_PREFIX + 1}), unhex({self._hash}))"
        cases = "".join(
            f"WHEN '{_prefix(id)}' THEN from_avro({body}, {literal(_ended(written))}, {options}) "
            for id, written in sorted((id, telling_names(writer, self.schema)) for id, writer in alike.items())
        )
        nothing = f"from_avro(CAST(NULL AS BINARY), {reader}, map('mode', 'PERMISSIVE'))"
        return f"CASE {self._found_prefix} {cases}ELSE {nothing} END" if cases else nothing

    @property
    def why_sql(self) -> str | None:
        """What is wrong with the bytes, in words, where that can be told; null where they are no bytes."""
        if self.function:
            return f"{self.given}.why"
        if self.writers is None:
            return None
        known = ", ".join(f"'{_prefix(id)}'" for id in sorted(self.writers)) or "''"
        told = f"the {self.column} names no schema that the registry has for it"
        others = "".join(
            f"WHEN {self._found_prefix} = '{_prefix(id)}' THEN {literal(f'the {self.column} is a {found}')} "
            for id, found in sorted(self._others.items())
        )
        return f"CASE WHEN {self._found_prefix} NOT IN ({known}) THEN '{told}' {others}END"

    @property
    def _found_prefix(self) -> str:
        return f"hex(substring({self.column}, 1, {_PREFIX}))"

    @property
    def given(self) -> str:
        """The column of what a function gives: STRUCT<found, why>."""
        return f"_lockstep_given_{self.column}"

    def cast_sql(self, decoded: str) -> str:
        """What was decoded, with the types of the schema."""
        return self._strict.fitted(decoded) if self.encoding is PartEncoding.JSON else decoded

    @cached_property
    def _strict(self) -> Strict:
        return Strict(self.schema, "json", line=self._text)

    @property
    def wrapper_field(self) -> str | None:
        """The field of what was decoded that is all of it, if it had to be put into a record."""
        wrapped = self.encoding is PartEncoding.AVRO and not _is_record(json.loads(self.schema))
        return _VALUE if wrapped else None

    @property
    def _hash(self) -> str:
        return f"md5({self.column})"

    @property
    def raw_sql(self) -> str:
        """The bytes, as members of a struct: as text where they are text, else in base64."""
        text = f"IF({self._is_no_text}, NULL, {self._text}) AS {self.column}"
        return f"{text}, IF({self._is_no_text}, base64({self.column}), NULL) AS {self.column}_base64"

    @property
    def _text(self) -> str:
        return f"CAST({self.column} AS STRING)"

    @property
    def _is_no_text(self) -> str:
        return f"NOT coalesce(is_valid_utf8({self._text}), true)"


def reference_of(where: str, part: str, given: str | Function) -> str:
    """What a definition says of a part, as a plan has it. Raises `InvalidPipeline` for a function without a name."""
    if isinstance(given, str):
        return given
    found = f"{getattr(given, '__module__', None)}:{getattr(given, '__qualname__', None)}"
    if not _REFERENCE.fullmatch(found) or found.startswith(("__main__:", "None:")):
        raise InvalidPipeline(
            f"{where}: {part} is {found}, which no other process can import: give a function that stands in a module"
        )
    return found


def _require_avro(where: str, name: str, schema: str) -> None:
    what = f"{where}: {name}_schema"
    try:
        found = json.loads(schema)
    except ValueError as error:
        raise InvalidPipeline(f"{what} is no JSON: {error}") from None
    if isinstance(found, list):
        raise InvalidPipeline(
            f"{what} is to be one type, not a union: a record without a key or a value has null there"
        )


def _prefix(id: int) -> str:
    """The bytes in front of what was written by a registry's schema: 0, and its id."""
    return f"{id:0{2 * _PREFIX}X}"


def _is_record(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "record"


def _widened(schema: str) -> Any:
    """The schema with decimals of more than 18 digits: of others Spark takes the last 64 bits, whatever is before."""

    def widen(found: dict[str, Any]) -> dict[str, Any]:
        size = found.get("size", 16)  # bytes, of a fixed type; eight are 18 digits
        short = found.get("logicalType") == "decimal" and found.get("precision", 99) <= 18 and size > 8
        return {**found, "precision": min(38, int((8 * size - 1) * 0.30103))} if short else found

    return json.loads(schema, object_hook=widen)


def _ended(schema: str) -> str:
    """The schema of the bytes with their hash behind them."""
    found = json.loads(schema)
    if not _is_record(found):
        found = {"type": "record", "name": "_lockstep_wrapped", "fields": [{"name": _VALUE, "type": found}]}
    end = {"name": _END, "type": {"type": "fixed", "name": "_lockstep_hash", "size": 16}}
    return json.dumps({**found, "fields": [*found["fields"], end]})


_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_PARTS = {"array": "items", "map": "values"}
_NOT_READ = ("aliases", "default")  #: of a writer's schema nobody asks for them


def of_another_type(writer: str, reader: str) -> str | None:
    """What the schemas' values are, in words, if one of the two is a record and the other isn't that record."""
    found, wanted = _AvroSchema(writer), _AvroSchema(reader)
    if not (found.is_record or wanted.is_record) or wanted.namesake(found, found.root, [wanted.root]) is not None:
        return None
    return f"{found.told}, and not {wanted.told}"


def telling_names(writer: str, reader: str) -> str:
    """The writer's schema, of the same bytes, so that Avro resolves the reader's against it by names: a named type has
    the reader's name for it, and is one that nothing resolves to where the reader wants another one, in a union, too.
    """
    found, wanted = _AvroSchema(writer), _AvroSchema(reader)
    return json.dumps(_Joint(found, wanted).written(found.root, wanted.root))


class _AvroSchema:
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

    def namesake(self, writer: _AvroSchema, name: Json, offered: Sequence[Json]) -> str | None:
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

    def __init__(self, writer: _AvroSchema, reader: _AvroSchema) -> None:
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
