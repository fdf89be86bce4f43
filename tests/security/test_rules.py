"""Rules that the code keeps: what would let data become code, or open a door to the network."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

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
            yield ast.unparse(node.func), node


def has_true(call: ast.Call, keyword: str) -> bool:
    return any(
        one.arg == keyword and not (isinstance(one.value, ast.Constant) and not one.value.value)
        for one in call.keywords
    )


def breaches(file: Path) -> list[str]:
    return [
        f"{file.name}:{call.lineno}: {name}"
        for name, call in calls(file)
        if name in RUN | LISTEN or name.endswith((".bind", ".listen")) or has_true(call, "shell")
    ]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_nothing_is_unpickled_evaluated_or_run_by_a_shell(file: Path) -> None:
    assert breaches(file) == []


def test_the_rule_finds_what_breaks_it(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("eval('1')\npickle.loads(b'')\nrun('ls', shell=True)\nserver.listen()\nrun('ls', shell=False)\n")
    assert len(breaches(broken)) == 4
