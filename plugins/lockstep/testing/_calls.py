"""A trace of the calls that a sink's own code makes, so that it can die between any two of them."""

from __future__ import annotations

import builtins
import sys
from collections import Counter
from importlib.util import find_spec
from types import FrameType, ModuleType
from typing import Any

from lockstep.sinks.open_sink import OpenSink
from lockstep.testing._crash_sweep import OnStep, Trace, reached_points

OCCURRENCES = 2  #: of one call at one place; the third is made in the state that the second left
_TEMPLATES = {
    *("builtins", "abc"),
    *(f"lockstep.sinks.{name}" for name in ("base", "values", "open_sink", "two_phase", "write_ahead", "adopting")),
}
#: modules that do nothing to a target but by calls of others, which are told by themselves
_TRANSPARENT = {
    *_TEMPLATES,
    *(f"lockstep.{name}" for name in ("epoch", "sinks.handles")),
    *(
        f"lockstep.testing.{name}"
        for name in ("_under_test", "_children", "_crash_sweep", "_sealed_rows", "_rows_at_home")
    ),
    *("contextlib", "functools", "uuid"),
}
_BUILTIN_TYPES = (str, bytes, int, float, list, dict, tuple, set, frozenset, type(None))


def calls_of(sink: OpenSink) -> Trace:
    """Every call made from the modules that `sink`, its description and committer are written in; every crash point."""
    return calls_from(*_modules_of(sink))


def calls_from(*modules: str) -> Trace:
    """Every call that these modules make of other code, and that other code makes of them, told before it is made.

    Left out is what has no effect on a target: calls of builtin functions and of builtin types' methods, and calls
    within the modules, as nothing happens before the first call that the callee makes. Raises `ValueError` for a module
    that isn't there: nothing would be traced.
    """
    if unknown_files := [module for module in modules if module not in sys.modules and find_spec(module) is None]:
        raise ValueError(f"no such modules: {', '.join(unknown_files)}")

    def trace(on_step: OnStep) -> None:
        reached_points(on_step)
        seen: Counter[str] = Counter()

        def told(place: FrameType, callee: str) -> None:
            step = f"{place.f_code.co_qualname}:{place.f_lineno} calls {callee}"
            seen[step] += 1
            if seen[step] <= OCCURRENCES:
                on_step(step)

        def profile(frame: FrameType, event: str, argument: Any) -> None:
            caller = frame.f_back
            if event == "c_call" and _is_from(frame, modules) and not _is_builtin(argument):
                told(frame, getattr(argument, "__qualname__", str(argument)))
            elif event == "call" and caller is not None and not _is_generated(frame) and crosses(caller, frame):
                told(caller, frame.f_code.co_qualname)

        def crosses(caller: FrameType, frame: FrameType) -> bool:
            inside = _is_from(caller, modules), _is_from(frame, modules)
            return inside in ((True, False), (False, True)) and not (_is_transparent(caller) or _is_transparent(frame))

        sys.setprofile(profile)

    return trace


def _modules_of(sink: OpenSink) -> set[str]:
    parts = [sink, sink.sink, getattr(sink, "committer", None)]
    found = {kind.__module__ for part in parts if part is not None for kind in type(part).__mro__}
    return found - _TEMPLATES


def _is_from(frame: FrameType, modules: tuple[str, ...]) -> bool:
    return frame.f_globals.get("__name__") in modules and frame.f_code.co_name != "<module>"


def _is_generated(frame: FrameType) -> bool:
    """What `dataclass` has written, and what C code calls by itself."""
    return frame.f_code.co_filename.startswith("<") or frame.f_globals.get("__name__", "").startswith("encodings.")


def _is_transparent(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") in _TRANSPARENT or frame.f_code.co_qualname.startswith("PurePath.")


def _is_builtin(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    return (
        owner is builtins
        or isinstance(owner, (*_BUILTIN_TYPES, type))
        or (isinstance(owner, ModuleType) and owner.__name__ in ("itertools", "math", "operator", "_functools"))
    )
