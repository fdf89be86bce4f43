"""Which source a module was loaded from: its file may be another one by now, and a process runs what it has loaded.

Python keeps no source of what it imports. So the one that is found first stays the module's until it is imported anew,
if what lies in memory is compiled from it: every function of the file, and each name that it binds once, to a constant.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from dis import get_instructions
from importlib.abc import InspectLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any

LIVE = "live:"  #: before the digest of what lies in memory, and comes from another source than its file's
_PLAIN = (int, float, complex, str, bytes, bool, type(None))


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
        constants = {name: _told(value) for name, value in _constants(tree).items()}
        return cls(module.__spec__, hash_text(text), frozenset(map(_digest, _nested(compiled))), constants)

    def made(self, module: ModuleType) -> bool:
        """Whether the module, as it lies in memory, comes from it."""
        held = vars(module)
        return (
            self.spec is module.__spec__
            and all(name in held and _told(held[name]) == told for name, told in self.constants.items())
            and all(_digest(function.__code__) in self.codes for function in _functions(module))
        )


_found: dict[str, _Source] = {}


def loaded_version(module: ModuleType) -> str | None:
    """`hash_text` of the source that `module` was loaded from, which is the same in every process and with any Python.

    Where its file was edited before anybody asked: LIVE and a digest of the functions in memory and the plain values
    that they read, by which only processes of one minor version of Python agree. None where its source can't be read.
    """
    found = _found.get(module.__name__)
    if found is not None and found.made(module):
        return found.version
    try:
        found = _Source.of(module, inspect.getsource(module))
    except (OSError, TypeError):
        return None
    if found is None or not found.made(module):
        return LIVE + _live(module)
    _found[module.__name__] = found
    return found.version


def hash_text(source: str) -> str:
    """12 hex digits of its sha256."""
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def _live(module: ModuleType) -> str:
    functions, held = list(_functions(module)), vars(module)
    codes = [code for function in functions for code in _nested(function.__code__)]
    read = {name for code in codes for name in code.co_names if isinstance(held.get(name, ...), _PLAIN)}
    read -= {one.argval for code in codes for one in get_instructions(code) if one.opname == "STORE_GLOBAL"}
    told = [sorted({_digest(code) for code in codes}), sorted((name, _told(held[name])) for name in read)]
    return hash_text(json.dumps(told))


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Those that its file defines, in classes and behind decorators too."""
    left: list[Any] = [*vars(module).values()]
    seen: set[int] = set()
    while left:
        value = left.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            if value.__code__.co_filename == module.__file__:
                yield value
            left.append(getattr(value, "__wrapped__", None))
        elif isinstance(value, staticmethod | classmethod | functools._lru_cache_wrapper):
            left.append(value.__wrapped__)
        elif isinstance(value, property):
            left += [value.fget, value.fset, value.fdel]
        elif isinstance(value, type) and value.__module__ == module.__name__:
            left += vars(value).values()


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _digest(code: CodeType) -> str:
    """Of what it does, wherever it stands in its file."""
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    does = (code.co_code.hex(), code.co_exceptiontable.hex(), _told(code.co_consts))
    return hash_text(json.dumps([counts, names, does]))


def _told(value: object) -> str:
    """A constant as every process tells it; of anything else its type alone."""
    if isinstance(value, CodeType):
        return _digest(value)
    if isinstance(value, tuple | frozenset):
        told = [_told(one) for one in value]
        return f"{type(value).__name__}{sorted(told) if isinstance(value, frozenset) else told}"
    return repr(value) if isinstance(value, (*_PLAIN, type(...))) else f"<{type(value).__name__}>"


def _constants(tree: ast.Module) -> dict[str, object]:
    """What no function binds anew."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
    times = Counter(node.id for node in names)
    times.update(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
    found: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(targets[0], ast.Name) and times[targets[0].id] == 1:
                _take(found, targets[0].id, node.value)
    return found


def _take(found: dict[str, object], name: str, node: ast.expr) -> None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return
    if isinstance(value, (*_PLAIN, tuple)):
        found[name] = value
