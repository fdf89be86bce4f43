"""What the bytes of Kafka's keys and values are, as SQL expressions that decode them and tell what can't be decoded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from lockstep.definition.ddl import literal
from lockstep.errors import InvalidPipeline
from lockstep.sources._strict import Strict, has_more_json, plain_text, tame_json
from lockstep.sources.kafka._avro_names import of_another_type, telling_names
from lockstep.sources.records import BAD, JSON_LOCALE

#: Behind the bytes stands their hash when they are decoded, as one field more: who doesn't find it there has read too
#: little of them or too much, and bytes that are left over are as malformed as those that are missing.
_END = "_lockstep_end"
#: Gives what stands in the bytes, a mapping by column, or raises.
Function = Callable[[bytes], Any]
_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_PREFIX = 5  #: bytes
_VALUE = "value"  #: what is in a record of two that carries the hash, where the bytes aren't a record


class Encoding(StrEnum):
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
    encoding: Encoding
    schema: str
    function: str = ""
    writers: Mapping[int, str] | None = None

    @classmethod
    def of(cls, where: str, column: str, encoding: str, schema: str | None) -> Decoding:
        """Raises `InvalidPipeline`."""
        function = encoding if _REFERENCE.fullmatch(encoding) and encoding not in tuple(Encoding) else ""
        kind = Encoding.FUNCTION if function else encoding
        if kind not in tuple(Encoding) or (kind == Encoding.FUNCTION and not function):
            raise InvalidPipeline(f"{where}: {column}={encoding!r} is none of {', '.join(Encoding)}")
        needs = kind in (Encoding.JSON, Encoding.AVRO, Encoding.FUNCTION)
        if needs != (schema is not None):
            raise InvalidPipeline(
                f"{where}: {column}_schema goes with {column}='json' or 'avro', or with a function, and only with them"
            )
        if kind == Encoding.AVRO:
            _require_avro(where, column, schema or "")
        if function and plain_text(schema or "") != schema:
            raise InvalidPipeline(f"{where}: {column}_schema: a function's texts have no checked length: say STRING")
        if kind == Encoding.JSON:
            _ = Strict(schema or "", "json").schema  # or a type that can't be checked is refused only by Spark's job
        return cls(column, Encoding(kind), schema or "", function)

    @property
    def may_fail(self) -> bool:
        return self.encoding is not Encoding.BYTES

    @property
    def added_field(self) -> str | None:
        """The field of a decoded record that tells whether it was one, if there is such a field."""
        match self.encoding:
            case Encoding.JSON:
                return BAD
            case Encoding.AVRO:
                return _END
            case _:
                return None

    @property
    def decode_sql(self) -> str:
        """The part, decoded, with the `added_field`."""
        match self.encoding:
            case Encoding.BYTES:
                return self.column
            case Encoding.STRING:
                return self._text
            case Encoding.JSON:
                options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD, **JSON_LOCALE}
                pairs = ", ".join(literal(text) for pair in options.items() for text in pair)
                text = tame_json(self._strict.schema, self._text, pairs)
                return f"from_json({text}, {literal(f'{self._strict.schema}, {BAD} STRING')}, map({pairs}))"
            case Encoding.AVRO if self.writers is None:
                ended = f"concat({self.column}, unhex({self._hash}))"
                return f"from_avro({ended}, {literal(_ended(self.schema))}, map('mode', 'PERMISSIVE'))"
            case Encoding.AVRO:
                return self._registered_sql
            case Encoding.FUNCTION:
                return f"{self.given}.found"

    def fault_sql(self, decoded: str) -> str:
        """Whether the bytes aren't what they should be, as an SQL condition; no bytes are no fault."""
        failed = f"({self.column} IS NOT NULL AND {decoded} IS NULL)"
        match self.encoding:
            case Encoding.BYTES:
                return "false"
            case Encoding.STRING:
                return self._is_no_text
            case Encoding.JSON:  # its parser puts a replacement in the place of what is no UTF-8
                more = f"({self.column} IS NOT NULL AND {has_more_json(self._text)})"
                wrong = f"{decoded}.{BAD} IS NOT NULL OR {failed} OR {self._is_no_text} OR {more}"
                return f"({wrong} OR {self._strict.changed(decoded)})"
            case Encoding.AVRO:
                found, text = f"{decoded}.{_END} = unhex({self._hash})", f"to_json({decoded})"
                if (wide := _widened(self.schema)) != json.loads(self.schema):
                    found += f" AND {text} = to_json({replace(self, schema=json.dumps(wide)).decode_sql})"
                if '"string"' in self.schema or '"map"' in self.schema:
                    found += f" AND NOT contains({text}, '\ufffd')"  # in the place of bytes that are no text
                return f"({self.column} IS NOT NULL AND NOT coalesce({found}, false))"
            case Encoding.FUNCTION:
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
        return self._strict.fitted(decoded) if self.encoding is Encoding.JSON else decoded

    @cached_property
    def _strict(self) -> Strict:
        return Strict(self.schema, "json", line=self._text)

    @property
    def wrapper_field(self) -> str | None:
        """The field of what was decoded that is all of it, if it had to be put into a record."""
        wrapped = self.encoding is Encoding.AVRO and not _is_record(json.loads(self.schema))
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
