"""The library's names say what they hold: no variable, parameter or attribute is called by a word that says nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "plugins" / "lockstep"
EMPTY = frozenset(
    {"asked", "begun", "found", "given", "gone", "held", "kept", "known", "left", "made", "meant", "named", "one"}
    | {"others", "said", "shown", "taken", "those", "told", "wanted", "whose"}
)


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
    places = [
        f"{path.relative_to(LIBRARY)}:{line} {name}"
        for path in sorted(LIBRARY.rglob("*.py"))
        for line, name in empty_names(ast.parse(path.read_text()))
    ]
    assert not places, f"call what these hold by its name: {', '.join(places)}"


@pytest.mark.parametrize("code", ["found = 1", "def f(kept): ...", "self._told = 1", "[one for one in rows]"])
def test_the_rule_sees_every_place_that_binds_a_name(code: str) -> None:
    assert list(empty_names(ast.parse(code)))
