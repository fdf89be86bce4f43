"""Functions of users that a plan names, as `module:function`, and that any process imports."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from typing import Any

from lockstep.definition.loaded_source import hash_text, loaded_version
from lockstep.errors import InvalidPipeline


def import_function(reference: str) -> Callable[..., Any]:
    """The function that `module:function` names. Raises `InvalidPipeline`."""
    module, _, name = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # a module's own code may raise anything
        raise InvalidPipeline(f"{reference} can't be imported: {error}; give module:function") from error
    if not callable(found):
        raise InvalidPipeline(f"{reference} is no function")
    return found  # type: ignore[no-any-return]


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
    versions = dict.fromkeys(loaded_version(one) if one is not None else None for one in modules)
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
