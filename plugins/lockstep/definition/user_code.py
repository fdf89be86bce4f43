"""Users' functions and classes in plans: their names, and the version of the source that they were loaded from.

A module's file may have changed since it was imported, and a process runs what it has loaded. Python keeps no source of
what it imports, so the first source found stays the module's until it is imported anew, if what lies in memory is
compiled from it: every function of the file, and each name that it binds once, to a constant.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import inspect
import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from dis import get_instructions
from importlib.abc import InspectLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any

from lockstep.distribution import naming_extra
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline

LIVE = "live:"  #: prefix of the digest of a module in memory that differs from its file
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_sources: dict[str, _Source] = {}


@dataclass(frozen=True)
class ClassNames:
    """Names of the classes of one package. Lockstep's own classes are named by the package, not by their module."""

    package: str

    def name(self, cls: type) -> str:
        """The class's name in plans, `module:name`."""
        own = cls.__module__.startswith(f"{self.package}.")
        return f"{self.package if own else cls.__module__}:{cls.__qualname__}"

    def current(self, written: str) -> str:
        """`written` with the package in place of a module of it."""
        module, _, qualname = written.partition(":")
        return f"{self.package}:{qualname}" if module.startswith(f"{self.package}.") else written

    def load(self, written: str) -> Any:
        """Import the class of that name. Raises `InvalidPipeline`."""
        module, _, qualname = self.current(written).partition(":")
        try:
            with naming_extra(qualname):
                loaded: Any = importlib.import_module(module)
            for part in qualname.split("."):
                loaded = getattr(loaded, part)
        except (ImportError, AttributeError) as error:
            raise InvalidPipeline(f"the plan's class {written} can't be imported: {error}") from error
        return loaded


def argument_as_json(described: object, argument: str, owner: str) -> Json:
    """An attribute as JSON for a plan; a duration is a number of seconds. Raises `InvalidPipeline` if it can't be
    JSON."""
    value = getattr(described, argument)
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_plain))
    except (TypeError, ValueError) as error:
        raise InvalidPipeline(
            f"{owner}: {argument} is {type(value).__name__}, which can't be JSON in a plan: use plain values, "
            f"or convert it in {type(described).__name__}.arguments ({error})"
        ) from error


def _plain(value: object) -> Json:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} is no JSON")


@dataclass(frozen=True)
class _Source:
    spec: object  #: the module's; a reload replaces it
    version: str
    codes: frozenset[str]
    constants: dict[str, str]

    @classmethod
    def of(cls, module: ModuleType, text: str) -> _Source | None:
        """The source `text` of the module's file; None if it can't be compiled."""
        try:
            compiled, tree = InspectLoader.source_to_code(text, ""), ast.parse(text)
        except (ValueError, SyntaxError):
            return None
        constants = {name: _constant_text(value) for name, value in _constants(tree).items()}
        return cls(module.__spec__, hash_text(text), frozenset(map(_digest, _nested(compiled))), constants)

    def matches(self, module: ModuleType) -> bool:
        """True if the module in memory was compiled from this source."""
        namespace = vars(module)
        return (
            self.spec is module.__spec__
            and all(
                name in namespace and _constant_text(namespace[name]) == text for name, text in self.constants.items()
            )
            and all(_digest(function.__code__) in self.codes for function in _functions(module))
        )


def loaded_version(module: ModuleType) -> str | None:
    """`hash_text` of the source that `module` was loaded from, which is the same in every process and with any Python.

    If its file was edited before the first call: LIVE and a digest of the functions in memory and the plain values that
    they read, which is the same only for one minor version of Python. None if its source can't be read.
    """
    source = _sources.get(module.__name__)
    if source is not None and source.matches(module):
        return source.version
    try:
        source = _Source.of(module, inspect.getsource(module))
    except (OSError, TypeError):
        return None
    if source is None or not source.matches(module):
        return LIVE + _live(module)
    _sources[module.__name__] = source
    return source.version


def hash_text(source: str) -> str:
    """The first 12 hex digits of the text's sha256."""
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def _live(module: ModuleType) -> str:
    functions, namespace = list(_functions(module)), vars(module)
    codes = [code for function in functions for code in _nested(function.__code__)]
    read = {name for code in codes for name in code.co_names if isinstance(namespace.get(name, ...), _PLAIN)}
    read -= {
        instruction.argval
        for code in codes
        for instruction in get_instructions(code)
        if instruction.opname == "STORE_GLOBAL"
    }
    parts = [
        sorted({_digest(code) for code in codes}),
        sorted((name, _constant_text(namespace[name])) for name in read),
    ]
    return hash_text(json.dumps(parts))


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """The functions that the module's file defines, also in classes and behind decorators."""
    remaining: list[Any] = [*vars(module).values()]
    seen: set[int] = set()
    while remaining:
        value = remaining.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            if value.__code__.co_filename == module.__file__:
                yield value
            remaining.append(getattr(value, "__wrapped__", None))
        elif isinstance(value, staticmethod | classmethod | functools._lru_cache_wrapper):
            remaining.append(value.__wrapped__)
        elif isinstance(value, property):
            remaining += [value.fget, value.fset, value.fdel]
        elif isinstance(value, type) and value.__module__ == module.__name__:
            remaining += vars(value).values()


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _digest(code: CodeType) -> str:
    """A digest of the code without its place in the file."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    does = (code.co_code.hex(), code.co_exceptiontable.hex(), _constant_text(code.co_consts))
    return hash_text(json.dumps([counts, names, does]))


def _constant_text(value: object) -> str:
    """A constant's text, the same in every process; for other values only their type."""
    if isinstance(value, CodeType):
        return _digest(value)
    if isinstance(value, tuple | frozenset):
        items = [_constant_text(item) for item in value]
        return f"{type(value).__name__}{sorted(items) if isinstance(value, frozenset) else items}"
    return repr(value) if isinstance(value, (*_PLAIN, type(...))) else f"<{type(value).__name__}>"


def _constants(tree: ast.Module) -> dict[str, object]:
    """The module-level names that are bound once, to a constant."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    times = Counter(node.id for node in names)
    times.update(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
    constants: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(targets[0], ast.Name) and times[targets[0].id] == 1:
                with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                    value = ast.literal_eval(node.value)
                    if isinstance(value, (*_PLAIN, tuple)):
                        constants[targets[0].id] = value
    return constants


def import_function(reference: str) -> Callable[..., Any]:
    """Import the function `module:function`. Raises `InvalidPipeline`."""
    module, _, name = reference.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as error:  # a module's own code may raise anything
        raise InvalidPipeline(f"{reference} can't be imported: {error}; give module:function") from error
    if not callable(function):
        raise InvalidPipeline(f"{reference} is no function")
    return function  # type: ignore[no-any-return]


def reference_to(function: Callable[..., Any]) -> str:
    """The reference `module:function` by which any process imports `function`. Raises `InvalidPipeline` if there is
    none."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    problem = None
    if not module or not name.isidentifier():
        problem = "it has no name at the top of a module"
    elif module == "__main__":
        problem = "its module is the main program, which only this process has"
    elif import_function(f"{module}:{name}") is not function:
        problem = f"{module}:{name} is another function"
    if problem:
        raise InvalidPipeline(
            f"{name or function!r} can't be imported by another process: {problem}; define it with def in a module of "
            "its own, or name it as 'module:function'"
        )
    return f"{module}:{name}"


def hash_source(function: Any) -> str | None:
    """`hash_text` of the module `function`, or of the module that defines it; None if its source can't be read."""
    try:
        module = inspect.getmodule(function)
        source = inspect.getsource(module if module is not None else function)
    except (OSError, TypeError):
        return None
    return hash_text(source)


def describe_version(reference: str) -> str:
    """The version of the function `module:function`: `loaded_version` of the module that defines it, and of the module
    that it is imported from. Raises `InvalidPipeline` if it isn't a function, or its source can't be read."""
    function = inspect.unwrap(import_function(reference))
    if not inspect.isfunction(function):
        raise InvalidPipeline(f"{reference} is {type(function).__name__}, not a function defined with def")
    modules = (inspect.getmodule(function), sys.modules[reference.partition(":")[0]])
    versions = dict.fromkeys(loaded_version(module) if module is not None else None for module in modules)
    if None in versions:
        raise InvalidPipeline(f"changes of {reference} can't be detected: its source can't be read")
    return "-".join(map(str, versions))


def remember_source(reference: str) -> None:
    """Record the source of the module of `module:function`, if it is loaded, while its file is unchanged."""
    module = sys.modules.get(reference.partition(":")[0])
    if module is not None:
        loaded_version(module)


def describe_place(error: BaseException, caller: str) -> str:
    """The place of the error in the user's file: the last frame of the first file that isn't `caller`'s."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != caller]
    if not frames:
        return "where it is called"
    last = [frame for frame in frames if frame.filename == frames[0].filename][-1]
    line = f": {last.line}" if last.line else ""
    return f"{last.filename}:{last.lineno}, in {last.name}{line}"
