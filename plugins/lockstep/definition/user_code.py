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
from dataclasses import dataclass
from datetime import timedelta
from dis import get_instructions
from importlib.abc import InspectLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any

from lockstep.distribution import naming_extra
from lockstep.epoch import Json
from lockstep.errors import InvalidPipeline

LIVE = "live:"  #: before the digest of what lies in memory, and comes from another source than its file's
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_sources: dict[str, _Source] = {}


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
                loaded: Any = importlib.import_module(module)
            for part in qualname.split("."):
                loaded = getattr(loaded, part)
        except (ImportError, AttributeError) as error:
            raise InvalidPipeline(f"the plan's class {written} can't be imported: {error}") from error
        return loaded


def argument_as_json(described: object, argument: str, owner: str) -> Json:
    """An attribute as a plan has it. A duration is a number of seconds. Raises `InvalidPipeline` if it is no JSON."""
    value = getattr(described, argument)
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_plain))
    except (TypeError, ValueError) as error:
        raise InvalidPipeline(
            f"{owner}: {argument} is {type(value).__name__}, which can't stand in a plan as JSON: give plain "
            f"values, or have {type(described).__name__}.arguments say it otherwise ({error})"
        ) from error


def _plain(value: object) -> Json:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} is no JSON")


@dataclass(frozen=True)
class _Source:
    spec: object  #: the module's own; to reload a module gives it another one
    version: str
    codes: frozenset[str]
    constants: dict[str, str]

    @classmethod
    def of(cls, module: ModuleType, text: str) -> _Source | None:
        """`text`, which its file says now; None if that can't be compiled."""
        try:
            compiled, tree = InspectLoader.source_to_code(text, ""), ast.parse(text)
        except (ValueError, SyntaxError):
            return None
        constants = {name: _constant_text(value) for name, value in _constants(tree).items()}
        return cls(module.__spec__, hash_text(text), frozenset(map(_digest, _nested(compiled))), constants)

    def matches(self, module: ModuleType) -> bool:
        """Whether the module, as it lies in memory, comes from it."""
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

    Where its file was edited before anybody asked: LIVE and a digest of the functions in memory and the plain values
    that they read, by which only processes of one minor version of Python agree. None where its source can't be read.
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
    """12 hex digits of its sha256."""
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
    """Those that its file defines, in classes and behind decorators too."""
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
    """Of what it does, wherever it stands in its file."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    does = (code.co_code.hex(), code.co_exceptiontable.hex(), _constant_text(code.co_consts))
    return hash_text(json.dumps([counts, names, does]))


def _constant_text(value: object) -> str:
    """A constant as every process tells it; of anything else its type alone."""
    if isinstance(value, CodeType):
        return _digest(value)
    if isinstance(value, tuple | frozenset):
        items = [_constant_text(item) for item in value]
        return f"{type(value).__name__}{sorted(items) if isinstance(value, frozenset) else items}"
    return repr(value) if isinstance(value, (*_PLAIN, type(...))) else f"<{type(value).__name__}>"


def _constants(tree: ast.Module) -> dict[str, object]:
    """What no function binds anew."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    times = Counter(node.id for node in names)
    times.update(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
    constants: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(targets[0], ast.Name) and times[targets[0].id] == 1:
                _take(constants, targets[0].id, node.value)
    return constants


def _take(constants: dict[str, object], name: str, node: ast.expr) -> None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return
    if isinstance(value, (*_PLAIN, tuple)):
        constants[name] = value


def import_function(reference: str) -> Callable[..., Any]:
    """The function that `module:function` names. Raises `InvalidPipeline`."""
    module, _, name = reference.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except Exception as error:  # a module's own code may raise anything
        raise InvalidPipeline(f"{reference} can't be imported: {error}; give module:function") from error
    if not callable(function):
        raise InvalidPipeline(f"{reference} is no function")
    return function  # type: ignore[no-any-return]


def reference_to(function: Callable[..., Any]) -> str:
    """`module:function`, by which every process imports `function`. Raises `InvalidPipeline` if none does."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    problem = None
    if not module or not name.isidentifier():
        problem = "it has no name at the top of a module"
    elif module == "__main__":
        problem = "the program that runs is a module that only this process has"
    elif import_function(f"{module}:{name}") is not function:
        problem = f"{module}:{name} is another one"
    if problem:
        raise InvalidPipeline(
            f"{name or function!r} can't be imported by another process: {problem}; define it with def in a module of "
            "its own, or name it as 'module:function'"
        )
    return f"{module}:{name}"


def hash_source(function: Any) -> str | None:
    """12 hex digits of the sha256 of the module that defines `function`, or is it; None where nobody can read it."""
    try:
        module = inspect.getmodule(function)
        source = inspect.getsource(module if module is not None else function)
    except (OSError, TypeError):
        return None
    return hash_text(source)


def describe_version(reference: str) -> str:
    """By which it is seen that the function `module:function` is another one: `loaded_version` of the modules that
    define and that name it. Raises `InvalidPipeline` where there is none, or nobody can read it."""
    function = inspect.unwrap(import_function(reference))
    if not inspect.isfunction(function):
        raise InvalidPipeline(f"{reference} is {type(function).__name__}, and no function that is defined with def")
    modules = (inspect.getmodule(function), sys.modules[reference.partition(":")[0]])
    versions = dict.fromkeys(loaded_version(module) if module is not None else None for module in modules)
    if None in versions:
        raise InvalidPipeline(f"nobody can tell whether {reference} has changed: its source can't be read")
    return "-".join(map(str, versions))


def remember_source(reference: str) -> None:
    """Look at the source of `module:function` while its file is what was loaded, if it is loaded already."""
    module = sys.modules.get(reference.partition(":")[0])
    if module is not None:
        loaded_version(module)


def describe_place(error: BaseException, caller: str) -> str:
    """Where in the user's own file it went wrong: the last frame of the first file that isn't `caller`'s."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != caller]
    if not frames:
        return "where it is called"
    last = [frame for frame in frames if frame.filename == frames[0].filename][-1]
    line = f": {last.line}" if last.line else ""
    return f"{last.filename}:{last.lineno}, in {last.name}{line}"
