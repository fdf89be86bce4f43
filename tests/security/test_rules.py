"""Rules that the code keeps: what would let data become code, or open a door to the network."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "plugins" / "lockstep"
FILES = sorted(PACKAGE.rglob("*.py"))
#: calls that run what they are given
RUN = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "pickle.load", "pickle.loads"}
RUN |= {"cloudpickle.load", "cloudpickle.loads", "marshal.loads", "yaml.load", "yaml.unsafe_load", "shelve.open"}
#: calls that listen
LISTEN = {"socket.create_server", "socketserver.TCPServer", "http.server.HTTPServer", "HTTPServer"}


def calls(file: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            yield name_of(node.func), node


def name_of(node: ast.expr) -> str:
    """Dotted; "" is whatever has no name."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=owner, attr=name):
            return f"{name_of(owner)}.{name}"
    return ""


def has_true(call: ast.Call, keyword: str) -> bool:
    return any(
        one.arg == keyword and not (isinstance(one.value, ast.Constant) and not one.value.value)
        for one in call.keywords
    )


def breaches(file: Path) -> list[str]:
    return [
        f"{file}:{call.lineno}: {name}"
        for name, call in calls(file)
        if name in RUN | LISTEN or name.endswith((".bind", ".listen")) or has_true(call, "shell")
    ]


def test_nothing_is_unpickled_evaluated_or_run_by_a_shell() -> None:
    assert len(FILES) > 100
    assert [breach for file in FILES for breach in breaches(file)] == []


def test_the_rule_finds_what_breaks_it(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("eval('1')\npickle.loads(b'')\nrun('ls', shell=True)\nserver.listen()\nrun('ls', shell=False)\n")
    assert len(breaches(broken)) == 4
