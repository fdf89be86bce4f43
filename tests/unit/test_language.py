"""The library's names say what they hold: no variable, parameter or attribute is called by a word that says nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "plugins" / "lockstep"
EMPTY = frozenset(
    {"asked", "begun", "found", "given", "gone", "held", "kept", "known", "left", "made", "meant", "named", "one"}
    | {"others", "said", "shown", "taken", "those", "told", "wanted", "whose"}
)

FRAGMENT = re.compile(r"(Of|Those|The same|Whose|By|From|To|In|With|Only|Not|Who|Which|That|Nobody|Somebody|Whoever)\b")


@cache
def parsed() -> dict[str, ast.Module]:
    """{path below the library: its tree}."""
    return {str(path.relative_to(LIBRARY)): ast.parse(path.read_text()) for path in sorted(LIBRARY.rglob("*.py"))}


def empty_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each place that binds such a word, except fields of classes: JSON and metrics have these."""
    fields = {
        id(statement.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                if name.strip("_") in EMPTY and id(node) not in fields:
                    yield node.lineno, name


def test_no_variable_is_called_by_a_word_that_says_nothing() -> None:
    places = [f"{path}:{line} {name}" for path, tree in parsed().items() for line, name in empty_names(tree)]
    assert not places, f"call what these hold by its name: {', '.join(places)}"


def test_a_docstring_begins_with_a_sentence_of_its_own() -> None:
    places = [
        f"{path}: {text.splitlines()[0]}"
        for path, tree in parsed().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and FRAGMENT.match(text := ast.get_docstring(node) or "")
    ]
    assert not places, f"begin with a verb or a noun phrase: {places}"


@pytest.mark.parametrize("code", ["found = 1", "def f(kept): ...", "self._told = 1", "[one for one in rows]"])
def test_the_rule_sees_every_place_that_binds_a_name(code: str) -> None:
    assert list(empty_names(ast.parse(code)))
