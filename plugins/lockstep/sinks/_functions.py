"""Functions of users that a plan names, as `module:function`, and that any process imports."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from lockstep.errors import InvalidPipeline


def import_function(reference: str) -> Callable[..., Any]:
    """The function that `module:function` names. Raises `InvalidPipeline`."""
    module, _, name = reference.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
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
