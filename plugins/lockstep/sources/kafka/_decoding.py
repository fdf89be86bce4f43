"""SQL expressions that decode Kafka's keys and values, and detect what can't be decoded."""

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
from lockstep.sources._checked_schema import BAD, CheckedSchema, loses_json, plain_text, without_costly_decimals
from lockstep.sources.records import JSON_LOCALE

#: The hash of the bytes is appended to them and decoded as one more field. A decoder that doesn't find it has read too
#: few or too many bytes, so that surplus bytes are detected like missing ones.
_END = "_lockstep_end"
#: Returns a mapping by column of what the bytes contain, or raises.
Function = Callable[[bytes], Any]
_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_PREFIX = 5  #: bytes
_VALUE = "value"  #: field of a record that wraps the value and the hash, if the bytes aren't a record

_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})
_PARTS = {"array": "items", "map": "values"}
_NOT_READ = ("aliases", "default")  #: attributes of a writer's schema that have no effect


class PartEncoding(StrEnum):
    """The encoding of a key or a value."""

    BYTES = "bytes"
    STRING = "string"  #: UTF-8
    JSON = "json"  #: one object
    AVRO = "avro"  #: binary, without a container; with a schema registry's prefix where there is one
    FUNCTION = "module:function"  #: decoded by a Python function


@dataclass(frozen=True)
class Decoding:
    """The decoding of a record's key or value.

    `schema`: Spark DDL for JSON and functions; for Avro the writer's schema as JSON, or with a schema registry the
    reader's. `function`: its `module:name`. `writers`: the registry's schemas by id.
    """

    column: str
    encoding: PartEncoding
    schema: str
    function: str = ""
    writers: Mapping[int, str] | None = None

    @classmethod
    def of(cls, where: str, column: str, encoding: str, schema: str | None) -> Decoding:
        """Raise `InvalidPipeline` for an invalid encoding or schema."""
        function = encoding if _REFERENCE.fullmatch(encoding) and encoding not in tuple(PartEncoding) else ""
        kind = PartEncoding.FUNCTION if function else encoding
        if kind not in tuple(PartEncoding) or (kind == PartEncoding.FUNCTION and not function):
            raise InvalidPipeline(f"{where}: {column}={encoding!r} must be one of {', '.join(PartEncoding)}")
        needs = kind in (PartEncoding.JSON, PartEncoding.AVRO, PartEncoding.FUNCTION)
        if needs != (schema is not None):
            raise InvalidPipeline(
                f"{where}: {column}_schema goes with {column}='json' or 'avro', or with a function, and only with them"
            )
        if kind == PartEncoding.AVRO:
            try:
                avro = json.loads(schema or "")
            except ValueError as error:
                raise InvalidPipeline(f"{where}: {column}_schema is no JSON: {error}") from None
            if isinstance(avro, list):
                raise InvalidPipeline(
                    f"{where}: {column}_schema must be one type, not a union: a record without a key or a value has "
                    "null there"
                )
        if function and plain_text(schema or "") != schema:
            raise InvalidPipeline(f"{where}: {column}_schema: lengths of a function's texts aren't checked: use STRING")
        if kind == PartEncoding.JSON:
            _ = CheckedSchema(schema or "", "json").schema  # refuses unsupported types here, not in Spark's job
        return cls(column, PartEncoding(kind), schema or "", function)

    @property
    def may_fail(self) -> bool:
        return self.encoding is not PartEncoding.BYTES

    @property
    def added_field(self) -> str | None:
        """The field of a decoded record that shows whether decoding succeeded, if there is one."""
        match self.encoding:
            case PartEncoding.JSON:
                return BAD
            case PartEncoding.AVRO:
                return _END
            case _:
                return None

    @property
    def decode_sql(self) -> str:
        """The decoded part, including the `added_field`."""
        match self.encoding:
            case PartEncoding.BYTES:
                return self.column
            case PartEncoding.STRING:
                return self._text
            case PartEncoding.JSON:
                options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD, **JSON_LOCALE}
                pairs = ", ".join(literal(text) for pair in options.items() for text in pair)
                text = without_costly_decimals(self._checked_schema.schema, self._text, pairs)
                return f"from_json({text}, {literal(f'{self._checked_schema.schema}, {BAD} STRING')}, map({pairs}))"
            case PartEncoding.AVRO if self.writers is None:
                ended = f"concat({self.column}, unhex({self._hash}))"
                return f"from_avro({ended}, {literal(_ended(self.schema))}, map('mode', 'PERMISSIVE'))"
            case PartEncoding.AVRO:
                return self._registered_sql
            case PartEncoding.FUNCTION:
                return f"{self.given}.found"

    def fault_sql(self, decoded: str) -> str:
        """Return an SQL condition that the bytes are malformed; no bytes aren't."""
        failed = f"({self.column} IS NOT NULL AND {decoded} IS NULL)"
        match self.encoding:
            case PartEncoding.BYTES:
                return "false"
            case PartEncoding.STRING:
                return self._is_no_text
            case PartEncoding.JSON:  # its parser replaces what isn't UTF-8
                more = f"({self.column} IS NOT NULL AND {loses_json(self._text)})"
                wrong = f"{decoded}.{BAD} IS NOT NULL OR {failed} OR {self._is_no_text} OR {more}"
                return f"({wrong} OR {self._checked_schema.mismatch(decoded)})"
            case PartEncoding.AVRO:
                matches, text = f"{decoded}.{_END} = unhex({self._hash})", f"to_json({decoded})"
                if (widened := _widened(self.schema)) != json.loads(self.schema):
                    matches += f" AND {text} = to_json({replace(self, schema=json.dumps(widened)).decode_sql})"
                if '"string"' in self.schema or '"map"' in self.schema:
                    matches += f" AND NOT contains({text}, '\ufffd')"  # replaces bytes that aren't text
                return f"({self.column} IS NOT NULL AND NOT coalesce({matches}, false))"
            case PartEncoding.FUNCTION:
                return f"({self.given}.why IS NOT NULL)"

    @cached_property
    def _others(self) -> dict[int, str]:
        """Writers' schemas of another type than the reader's, by id, with a description of their type."""
        types = {id: of_another_type(writer, self.schema) for id, writer in (self.writers or {}).items()}
        return {id: description for id, description in types.items() if description is not None}

    @property
    def _registered_sql(self) -> str:
        """SQL that decodes by the writer's schema, which the prefix names, into the reader's schema."""
        matching = {id: writer for id, writer in (self.writers or {}).items() if id not in self._others}
        reader = literal(_ended(self.schema))
        options = f"map('mode', 'PERMISSIVE', 'avroSchema', {reader})"
        body = f"concat(substring({self.column}, {_PREFIX + 1}), unhex({self._hash}))"
        cases = "".join(
            f"WHEN '{_prefix(id)}' THEN from_avro({body}, {literal(_ended(schema))}, {options}) "
            for id, schema in sorted((id, with_reader_names(writer, self.schema)) for id, writer in matching.items())
        )
        null_record = f"from_avro(CAST(NULL AS BINARY), {reader}, map('mode', 'PERMISSIVE'))"
        return f"CASE {self._found_prefix} {cases}ELSE {null_record} END" if cases else null_record

    @property
    def why_sql(self) -> str | None:
        """SQL of what is wrong with the bytes, if that can be known; null if there are none."""
        if self.function:
            return f"{self.given}.why"
        if self.writers is None:
            return None
        prefixes = ", ".join(f"'{_prefix(id)}'" for id in sorted(self.writers)) or "''"
        unknown = f"the {self.column} names no schema that the registry has for it"
        mismatches = "".join(
            f"WHEN {self._found_prefix} = '{_prefix(id)}' THEN {literal(f'the {self.column} is a {description}')} "
            for id, description in sorted(self._others.items())
        )
        return f"CASE WHEN {self._found_prefix} NOT IN ({prefixes}) THEN '{unknown}' {mismatches}END"

    @property
    def _found_prefix(self) -> str:
        return f"hex(substring({self.column}, 1, {_PREFIX}))"

    @property
    def given(self) -> str:
        """The column of a function's result: STRUCT<found, why>."""
        return f"_lockstep_given_{self.column}"

    def cast_sql(self, decoded: str) -> str:
        """Return the decoded part with the types of the schema."""
        return self._checked_schema.to_declared(decoded) if self.encoding is PartEncoding.JSON else decoded

    @cached_property
    def _checked_schema(self) -> CheckedSchema:
        return CheckedSchema(self.schema, "json", line=self._text)

    @property
    def wrapper_field(self) -> str | None:
        """The field with the decoded value, if it had to be wrapped in a record."""
        wrapped = self.encoding is PartEncoding.AVRO and not _is_record(json.loads(self.schema))
        return _VALUE if wrapped else None

    @property
    def _hash(self) -> str:
        return f"md5({self.column})"

    @property
    def raw_sql(self) -> str:
        """The bytes as members of a struct: as text if they are valid UTF-8, else in base64."""
        text = f"IF({self._is_no_text}, NULL, {self._text}) AS {self.column}"
        return f"{text}, IF({self._is_no_text}, base64({self.column}), NULL) AS {self.column}_base64"

    @property
    def _text(self) -> str:
        return f"CAST({self.column} AS STRING)"

    @property
    def _is_no_text(self) -> str:
        return f"NOT coalesce(is_valid_utf8({self._text}), true)"


def reference_of(where: str, part: str, decoder: str | Function) -> str:
    """Return a part's encoding as plans store it. Raises `InvalidPipeline` for a function without a name."""
    if isinstance(decoder, str):
        return decoder
    reference = f"{getattr(decoder, '__module__', None)}:{getattr(decoder, '__qualname__', None)}"
    if not _REFERENCE.fullmatch(reference) or reference.startswith(("__main__:", "None:")):
        raise InvalidPipeline(
            f"{where}: {part} is {reference}, which other processes can't import: give a module's function"
        )
    return reference


def _prefix(id: int) -> str:
    """Return the prefix of the registry's wire format in hex: 0, and the schema's id."""
    return f"{id:0{2 * _PREFIX}X}"


def _is_record(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "record"


def _widened(schema: str) -> Any:
    """Return the schema with wide decimals of more than 18 digits: of others Spark keeps the last 64 bits only."""

    def widen(type: dict[str, Any]) -> dict[str, Any]:
        size = type.get("size", 16)  # bytes of a fixed type; eight hold 18 digits
        short = type.get("logicalType") == "decimal" and type.get("precision", 99) <= 18 and size > 8
        return {**type, "precision": min(38, int((8 * size - 1) * 0.30103))} if short else type

    return json.loads(schema, object_hook=widen)


def _ended(schema: str) -> str:
    """Return the schema of the bytes followed by their hash."""
    record = json.loads(schema)
    if not _is_record(record):
        record = {"type": "record", "name": "_lockstep_wrapped", "fields": [{"name": _VALUE, "type": record}]}
    end = {"name": _END, "type": {"type": "fixed", "name": "_lockstep_hash", "size": 16}}
    return json.dumps({**record, "fields": [*record["fields"], end]})


def of_another_type(writer: str, reader: str) -> str | None:
    """Describe how the schemas' types differ, if one is a record and the other isn't the same record; else None.

    By Avro's rules records, enums and fixed types match by name, or by an alias of the reader's. Its implementation
    (1.12, `org.apache.avro.Resolver`) ignores names of records, and compares only the last part of others: where a
    reader's fields have defaults, a record of any other type would be decoded.
    """
    written, read = _AvroSchema(writer), _AvroSchema(reader)
    if not (written.is_record or read.is_record) or read.namesake(written, written.root, [read.root]) is not None:
        return None
    return f"{written.type_name}, and not {read.type_name}"


def with_reader_names(writer: str, reader: str) -> str:
    """Return the writer's schema, renamed so that Avro's resolution matches types exactly by name.

    A named type gets the reader's name for it, or a unique one that matches nothing if the reader expects another type.
    """
    writer_schema, reader_schema = _AvroSchema(writer), _AvroSchema(reader)
    return json.dumps(_Renaming(writer_schema, reader_schema).written(writer_schema.root, reader_schema.root))


class _AvroSchema:
    """A parsed schema. `types`: named types by full name. Aliases and references are full names, too."""

    def __init__(self, text: str) -> None:
        self.types: dict[str, Json] = {}
        self.root = self._parse(json.loads(text), "")

    @property
    def is_record(self) -> bool:
        return self._kind(self.root) == "record"

    @property
    def type_name(self) -> str:
        """The type for messages."""
        if isinstance(self.root, list):
            return "union"
        return self.root if isinstance(self.root, str) else str(self.root["type"])

    def _kind(self, name: Json) -> str | None:
        """Return the kind of a named type; None for others."""
        return self.types[name]["type"] if isinstance(name, str) and name in self.types else None

    def unit(self, schema: Json) -> tuple[Json, ...] | None:
        """Return the unit of a number or bytes: the logical type, and a decimal's scale."""
        type = self.types.get(schema) if isinstance(schema, str) else schema
        return (kind, type.get("scale", 0)) if isinstance(type, dict) and (kind := type.get("logicalType")) else None

    def namesake(self, writer: _AvroSchema, name: Json, branches: Sequence[Json]) -> str | None:
        """Return which of the reader's types `branches` a writer's type is, by name or alias; None if none."""
        kind = writer._kind(name)
        candidates = [candidate for candidate in branches if kind is not None and self._kind(candidate) == kind]
        return next(
            (candidate for candidate in candidates if candidate == name),
            next((candidate for candidate in candidates if name in self.types[candidate]["aliases"]), None),
        )

    def _parse(self, schema: Json, space: str) -> Json:
        match schema:
            case str():
                full = _full_name(schema, space)
                return schema if schema in _PRIMITIVE or full not in self.types else full
            case list():
                return [self._parse(branch, space) for branch in schema]
            case {"type": str(kind), "name": str(name)} if kind in _NAMED:
                own = schema.get("namespace")
                return self._named(schema, _full_name(name, space if own is None else own))
            case {"type": "array" | "map" as kind}:
                return {**schema, _PARTS[kind]: self._parse(schema[_PARTS[kind]], space)}
            case {"type": str(kind)} if kind in _PRIMITIVE:
                return schema
        return self._parse(schema["type"], space)

    def _named(self, schema: Mapping[str, Json], full: str) -> str:
        space = full.rpartition(".")[0]
        aliases = [_full_name(alias, space) for alias in schema.get("aliases", ())]
        type = self.types[full] = {**schema, "aliases": aliases}  # before its fields, which may refer to it
        if "fields" in type:
            type["fields"] = [{**member, "type": self._parse(member["type"], space)} for member in type["fields"]]
        return full


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


class _Renaming:
    """Renames a writer's schema for a reader's. Each type is written once for each type that it is read as."""

    def __init__(self, writer: _AvroSchema, reader: _AvroSchema) -> None:
        self._writer, self._reader = writer, reader
        self._names: dict[tuple[str, str | None], str] = {}
        self._strange = 0

    def written(self, writer: Json, reader: Json | None) -> Json:
        """Return the renamed schema. `reader`: None if nothing is read of it, or nothing compatible."""
        branches = reader if isinstance(reader, list) else [reader]
        units = [unit for branch in branches if (unit := self._reader.unit(branch)) is not None]
        if units and self._writer.unit(writer) not in (None, *units):
            return self._nothing()  # Avro would mistake one unit for the other
        match writer:
            case list():
                return [self.written(branch, reader) for branch in writer]
            case str() if writer in self._writer.types:
                if reader is None:
                    return self._named(writer, None)
                reader_name = self._reader.namesake(self._writer, writer, branches)
                return self._nothing() if reader_name is None else self._named(writer, reader_name)
            case {"type": "array" | "map" as kind}:
                part = _PARTS[kind]
                readers = (branch[part] for branch in branches if isinstance(branch, dict) and branch["type"] == kind)
                return {**writer, part: self.written(writer[part], next(readers, None))}
        return writer

    def _nothing(self) -> Json:
        """Return a type that matches nothing, so that decoding a value of it fails."""
        self._strange += 1
        return {"type": "fixed", "name": f"_lockstep_strange_{self._strange}", "namespace": "", "size": 1}

    def _named(self, name: str, reader: str | None) -> Json:
        if (written_name := self._names.get((name, reader))) is not None:
            return written_name
        full = f"_lockstep_skipped.{name}" if reader is None else reader
        if full in self._names.values():  # another type already has this name of the reader's, by an alias
            full = f"_lockstep_{len(self._names)}.{full}"
        self._names[name, reader] = full
        space, _, last = full.rpartition(".")
        type = {key: value for key, value in self._writer.types[name].items() if key not in _NOT_READ}
        type |= {"name": last, "namespace": space}
        if "fields" in type:
            reader_fields = self._reader.types[reader]["fields"] if reader is not None else []
            read_types = {
                alias: field["type"] for field in reversed(reader_fields) for alias in field.get("aliases", ())
            }
            read_types |= {field["name"]: field["type"] for field in reversed(reader_fields)}
            type["fields"] = [
                {key: value for key, value in field.items() if key not in _NOT_READ}
                | {"type": self.written(field["type"], read_types.get(field["name"]))}
                for field in type["fields"]
            ]
        return type
