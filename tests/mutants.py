"""Measures what the tests prove: plants small bugs in the library, one at a time, and counts those that a test finds.

    python -m tests.mutants cover     # runs tier `test` once, and records which test executes which line
    python -m tests.mutants choose    # takes mutants at random, by a fixed seed, into tests/mutants.json
    python -m tests.mutants run       # runs each mutant's tests up to the first that fails, and writes the result there

`run --only NAME` runs one mutant, `run --jobs 1` one at a time. `show` prints the share of killed mutants by area. A
mutant is identified by its file, function, the text that it replaces and the occurrence of that text, so that edits
elsewhere don't matter.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue

from tests import seconds

ROOT = Path(__file__).parents[1]
LIBRARY = "plugins/lockstep"
LIST = ROOT / "tests/mutants.json"
RECORD = ROOT / ".mutants"  #: coverage and durations of the last `cover`
SEED = 2026
ORDER, LIMIT = "LOCKSTEP_MUTANTS_ORDER", "LOCKSTEP_MUTANTS_SECONDS"
#: gives up root for a moment, in which coverage can't write its file
UNPRIVILEGED = "tests/wal/test_staging.py::test_a_permission_that_was_lost_is_named"
SECONDS = 150.0  #: of tests, for one mutant
#: how many mutants an area gets, and its files
AREAS: dict[str, tuple[int, list[str]]] = {
    "protocol": (35, ["protocol/*.py", "features/*.py"]),
    "ledger": (15, ["ledger/*.py"]),
    "sql": (15, ["ledger/sql/*.sql"]),
    "wal": (15, ["wal/*.py"]),
    "templates": (10, ["sinks/*.py", "sinks/committers/*.py", "sinks/append_only/*.py"]),
    "tables": (15, ["sinks/tables/*.py", "sinks/postgres/*.py", "sinks/mariadb/*.py"]),
    "adopting": (15, ["sinks/delta/*.py", "sinks/iceberg/*.py", "sinks/adopting.py", "sinks/compacting.py"]),
}


@dataclass
class Mutant:
    """`function`: its qualified name, or the SQL statement's. `occurrence`: the number among equal edits there."""

    name: str
    area: str
    file: str
    function: str
    before: str
    after: str
    occurrence: int
    results: dict[str, str] = field(default_factory=dict)  #: by the label of a run


@dataclass(frozen=True)
class Edit:
    """Replaces the text from `start` to `end`, offsets in characters; `first` and `last` are lines of the statement."""

    function: str
    start: int
    end: int
    after: str
    first: int
    last: int


# --- planting ---------------------------------------------------------------------------------------------------------

COMPARISONS = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
INERT = ("_log.", "reach(", "bind_", "clear_log_context", "super().__init__", "logging.")


class Planter(ast.NodeVisitor):
    """Collects every edit that the operators allow in one Python file."""

    def __init__(self, text: str) -> None:
        self.edits: list[Edit] = []
        self._text = text
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._rows = text.splitlines()
        self._scope: list[str] = []
        self._statement: ast.stmt | None = None
        self.visit(ast.parse(text))

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            before, self._statement = self._statement, node
            super().visit(node)
            self._statement = before
        else:
            super().visit(node)

    def _named(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        self._scope.append(node.name)
        for part in node.body:
            self.visit(part)
        self._scope.pop()

    visit_ClassDef = visit_FunctionDef = _named

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1:
            after = COMPARISONS[type(node.ops[0])]
            self._edit(node, f"{self._source(node.left)} {after} {self._source(node.comparators[0])}")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = " or " if isinstance(node.op, ast.And) else " and "
        self._edit(node, "(" + word.join(f"({self._source(value)})" for value in node.values) + ")")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if self._source(node.test) != "TYPE_CHECKING":
            self._edit(node.test, f"not ({self._source(node.test)})")
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._edit(node.test, f"not ({self._source(node.test)})")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and not self._source(node).startswith(INERT):
            self._edit(node, "pass")
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._edit(node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if isinstance(node.value, ast.Call):
            self._edit(node, "return None")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._edit(node, str(not node.value))
        elif isinstance(node.value, int):
            self._edit(node, str(node.value + 1))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text for people."""

    def visit_arg(self, node: ast.arg) -> None:
        """No annotation."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        if not self._source(node.func).startswith(INERT):
            self.generic_visit(node)

    def _edit(self, node: ast.expr | ast.stmt, after: str) -> None:
        statement = self._statement
        if statement is None or not self._scope:
            return
        last = statement.end_lineno or statement.lineno
        if isinstance(statement, ast.If | ast.While):
            last = statement.test.end_lineno or last
        elif isinstance(statement, ast.For | ast.With | ast.Try):
            last = max(statement.lineno, statement.body[0].lineno - 1)
        start, end = self._place(node)
        self.edits.append(Edit(".".join(self._scope), start, end, after, statement.lineno, last))

    def _place(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        def offset(line: int, column: int) -> int:
            return self._lines[line - 1] + len(self._rows[line - 1].encode()[:column].decode())

        assert node.end_lineno is not None and node.end_col_offset is not None
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    def _source(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._place(node)
        return self._text[start:end]


SQL = [
    (r"(?<=[\w)] )=(?= )", "<>"),
    (r"(?<=[\w)] )<(?= )", "<="),
    (r"(?<=[\w)] )>(?= )", ">="),
    (r"(?<=\n)\s*AND [^\n(]*(?=\n)", ""),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"\bNOT EXISTS\b", "EXISTS"),
    (r" FOR UPDATE( OF \w+)?", ""),
    (r" DESC\b", ""),
    (r"\bmax\(", "min("),
    (r"\+ 1\b", "+ 0"),
    (r" DISTINCT\b", ""),
]


def edits_of(path: Path) -> list[Edit]:
    """Every edit of one file of the library."""
    text = path.read_text()
    if path.suffix == ".py":
        return Planter(text).edits
    found = []
    for pattern, after in SQL:
        for match in re.finditer(pattern, text):
            line = text.count("\n", 0, match.start()) + 1
            if "--" not in text[text.rfind("\n", 0, match.start()) + 1 : match.start()]:
                names = re.findall(r"^-- name: (\w+)$", text[: match.start()], re.MULTILINE) or [path.stem]
                found.append(Edit(names[-1], match.start(), match.end(), after, line, line))
    return found


def find(mutant: Mutant, root: Path = ROOT) -> Edit | None:
    """Where the mutant's text stands today; None if the code has changed."""
    path = root / mutant.file
    if not path.exists():
        return None
    text = path.read_text()
    same = [
        edit
        for edit in edits_of(path)
        if (edit.function, text[edit.start : edit.end], edit.after) == (mutant.function, mutant.before, mutant.after)
    ]
    return same[mutant.occurrence] if mutant.occurrence < len(same) else None


def choose() -> list[Mutant]:
    """Mutants at random, as many an area as the table says."""
    chosen = []
    for area, (count, patterns) in AREAS.items():
        files = sorted({path for pattern in patterns for path in (ROOT / LIBRARY).glob(pattern)})
        found = []
        for path in files:
            text, times = path.read_text(), Counter[tuple[str, str, str]]()
            for edit in edits_of(path):
                key = (edit.function, text[edit.start : edit.end], edit.after)
                found.append((str(path.relative_to(ROOT)), *key, times[key]))
                times[key] += 1
        for number, site in enumerate(sorted(random.Random(f"{SEED} {area}").sample(found, count)), start=1):
            chosen.append(Mutant(f"{area}-{number:02}", area, *site))
    return chosen


# --- which tests ------------------------------------------------------------------------------------------------------


class Coverage:
    """Which tests execute a line, and how long each takes, as `cover` has recorded."""

    def __init__(self, record: Path) -> None:
        from coverage import CoverageData

        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for path in sorted(record.glob("*.coverage")):
            data = CoverageData(str(path))
            data.read()
            for measured in data.measured_files():
                file = LIBRARY + measured.partition(f"/{LIBRARY}")[2]
                for line, contexts in data.contexts_by_lineno(measured).items():
                    self._lines[file][line].update(context.partition("|")[0] for context in contexts if context)
        self.seconds: dict[str, float] = json.loads((record / "seconds.json").read_text())

    def tests(self, mutant: Mutant) -> list[str]:
        """The quickest first; those that start Spark last."""
        edit = find(mutant)
        assert edit is not None, mutant
        lines = [(mutant.file, line) for line in range(edit.first, edit.last + 1)]
        if mutant.file.endswith(".sql"):
            lines = list(self._callers(mutant.function))
        tests = {test for file, line in lines for test in self._lines[file][line]}
        return sorted(tests & self.seconds.keys(), key=lambda test: ("/spark/" in test, self.seconds[test]))

    def _callers(self, statement: str) -> Iterator[tuple[str, int]]:
        for path in (ROOT / LIBRARY).rglob("*.py"):
            text = path.read_text()
            if f'"{statement}"' in text:
                for number, line in enumerate(text.splitlines(), start=1):
                    if f'"{statement}"' in line:
                        yield str(path.relative_to(ROOT)), number


def cover() -> int:
    """Run tier `test` with coverage by test. Forked children that are killed record nothing."""
    shutil.rmtree(RECORD, ignore_errors=True)
    RECORD.mkdir()
    settings = RECORD / "coveragerc"
    settings.write_text(f"[run]\nsource = {ROOT / LIBRARY}\nparallel = true\ndata_file = {RECORD / 'tests.coverage'}\n")
    options = [
        "--cov",
        "--cov-config",
        str(settings),
        "--cov-context=test",
        "--cov-report=",
        "--deselect",
        UNPRIVILEGED,
    ]
    code = subprocess.run(
        [sys.executable, "-m", "pytest", "--tier", "test", "-n", "auto", *options], cwd=ROOT, check=False
    ).returncode
    (RECORD / "seconds.json").write_text(json.dumps(seconds.load()))
    return code


# --- running ----------------------------------------------------------------------------------------------------------


def workspace() -> Path:
    """A copy of the checkout's files, to be changed."""
    folder = Path(tempfile.mkdtemp(prefix="lockstep-mutant-"))
    folder.chmod(0o755)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def strike(mutant: Mutant, tests: Sequence[str], folder: Path, limit: float) -> str:
    """What became of it: `killed by …`, or `survived …`."""
    edit = find(mutant, folder)
    assert edit is not None, mutant
    if not tests:
        return "survived: no test executes it"
    path = folder / mutant.file
    text = path.read_text()
    listed = folder / "mutant-tests.txt"
    listed.write_text("".join(f"{test}\n" for test in tests))
    try:
        path.write_text(text[: edit.start] + edit.after + text[edit.end :])
        return _run(tests, listed, folder, limit)
    finally:
        path.write_text(text)


def _run(tests: Sequence[str], listed: Path, folder: Path, limit: float) -> str:
    paths = f"{folder}:{folder / 'plugins'}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {
        "PYTHONPATH": paths,
        ORDER: str(listed),
        LIMIT: str(limit),
    }
    options = [
        "-x",
        "-q",
        "--no-header",
        "--tb=no",
        "--tier",
        "test",
        "--seed=17",
        "-o",
        "timeout=120",
        "-p",
        "tests.mutants",
    ]
    with (folder / "mutant.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, f"@{listed}"],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit + 120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return "killed by standing still"
    said = (folder / "mutant.log").read_text()
    if code == 0:
        return f"survived {len(tests)} tests"
    if code == 2 and "mutants: time is up" in said:
        return f"survived {limit:.0f} s of {len(tests)} tests"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    return f"killed by {failed[1] if failed else 'a broken import'}"


def run(label: str, jobs: int, only: str | None, record: Path, limit: float) -> None:
    """Every mutant that has no result under `label` yet."""
    mutants, coverage = load(), Coverage(record)
    folders: SimpleQueue[Path] = SimpleQueue()
    for _ in range(jobs):
        folders.put(workspace())

    def one(mutant: Mutant) -> None:
        folder = folders.get()
        began = time.monotonic()
        mutant.results[label] = strike(mutant, coverage.tests(mutant), folder, limit)
        folders.put(folder)
        save(mutants)
        print(f"{mutant.name:13} {time.monotonic() - began:4.0f} s  {mutant.results[label]}", flush=True)

    wanted = [one for one in mutants if (only in (None, one.name)) and (only or label not in one.results)]
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, wanted))
    while not folders.empty():
        shutil.rmtree(folders.get())
    show(label)


def load() -> list[Mutant]:
    return [Mutant(**row) for row in json.loads(LIST.read_text())]


def save(mutants: Sequence[Mutant]) -> None:
    LIST.write_text(json.dumps([asdict(mutant) for mutant in mutants], indent=1) + "\n")


def show(label: str) -> None:
    """The share of killed mutants, by area."""
    counts: dict[str, list[int]] = {}
    for mutant in load():
        if label in mutant.results:
            for area in (mutant.area, "all"):
                count = counts.setdefault(area, [0, 0])
                count[0] += mutant.results[label].startswith("killed")
                count[1] += 1
    for area, (killed, run) in sorted(counts.items()):
        print(f"{area:10} {killed} of {run} killed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["cover", "choose", "run", "show"])
    parser.add_argument("--label", default="now", help="what this run's results are called (now)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (2)")
    parser.add_argument("--only", help="one mutant, by its name")
    parser.add_argument("--record", type=Path, default=RECORD, help="where `cover` has recorded (.mutants)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of tests, for one mutant")
    given = parser.parse_args()
    match given.command:
        case "cover":
            return cover()
        case "choose":
            save(choose())
        case "run":
            run(given.label, given.jobs, given.only, given.record, given.seconds)
        case "show":
            show(given.label)
    return 0


# --- as a plugin of pytest --------------------------------------------------------------------------------------------


def pytest_collection_modifyitems(config, items):  # type: ignore[no-untyped-def]
    """In the order of the list."""
    if order := os.environ.get(ORDER):
        places = {name: place for place, name in enumerate(Path(order).read_text().splitlines())}
        items.sort(key=lambda item: places.get(item.nodeid, len(places)))


def pytest_runtest_setup(item):  # type: ignore[no-untyped-def]
    """Ends a mutant whose time is up."""
    if limit := os.environ.get(LIMIT):
        item.session.began = getattr(item.session, "began", time.monotonic())
        if time.monotonic() - item.session.began > float(limit):
            import pytest

            pytest.exit("mutants: time is up", returncode=2)


if __name__ == "__main__":
    sys.exit(main())
