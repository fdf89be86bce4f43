"""By which names plans call the classes of sources and sinks, and what stands in a plan of an argument."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lockstep.distribution import naming_extra
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline


@dataclass(frozen=True)
class ClassNames:
    """Names of the classes of one package: Lockstep's own classes are imported from it, wherever their module is."""

    package: str

    def name(self, cls: type) -> str:
        """`module:name` by which plans call the class."""
        own = cls.__module__.startswith(f"{self.package}.")
        return f"{self.package if own else cls.__module__}:{cls.__qualname__}"

    def current(self, written: str) -> str:
        """`written` with the package in place of a module of it."""
        module, _, qualname = written.partition(":")
        return f"{self.package}:{qualname}" if module.startswith(f"{self.package}.") else written

    def load(self, written: str) -> Any:
        """What has that name. Raises `InvalidPipeline` if it can't be imported."""
        module, _, qualname = self.current(written).partition(":")
        try:
            with naming_extra(qualname):
                found: Any = importlib.import_module(module)
            for part in qualname.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            raise InvalidPipeline(f"the plan's class {written} can't be imported: {error}") from error
        return found


def argument_as_json(described: object, argument: str, whose: str) -> Json:
    """An attribute as a plan has it. A duration is a number of seconds. Raises `InvalidPipeline` if it is no JSON."""
    value = getattr(described, argument)
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_plain))
    except (TypeError, ValueError) as error:
        raise InvalidPipeline(
            f"{whose}: {argument} is {type(value).__name__}, which can't stand in a plan as JSON: give plain "
            f"values, or have {type(described).__name__}.arguments say it otherwise ({error})"
        ) from error


def _plain(value: object) -> Json:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} is no JSON")
