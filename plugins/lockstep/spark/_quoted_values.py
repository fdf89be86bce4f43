"""What Spark says of a query that fails as it runs, without the values of rows that it quotes.

A message of Spark's ends in its SQLSTATE. Of class 22 ("data exception" in ISO/IEC 9075-2) and 23 it is about values,
of KD000 it quotes a line, and of 38, 39 and P0001 a function or a query of a user's says what it likes. All others
tell of files, memory, plans. Spark 4.0 tells what a function raises without a condition or a state, by its trace alone.
What Lockstep raises on a worker is of `lockstep.errors`, quotes none, and stays.
"""

from __future__ import annotations

import re

from lockstep import errors
from lockstep.observability.redaction import list_known

#: [CONDITION] words about a value. SQLSTATE: 22018
_CONDITION = re.compile(
    r"(\[[A-Z][A-Z0-9_.]+\]) ((?:(?!SQLSTATE: ).)*?)(SQLSTATE: (?:(?:22|23|38|39)[0-9A-Z]{3}|P0001|KD000))", re.DOTALL
)
#: Spark 4.0's error of a function, as a client has it, and as Java has.
_OF_WORKER = re.compile(
    r"(An exception was thrown from the Python worker\.|PythonException:)(?: Please see the stack trace below\.)?\s"
    r"Traceback \(most recent call last\):(.*?)(?=\n\tat |\n\n\w+ stacktrace:|\Z)",
    re.DOTALL,
)
#: The end of a trace of Python's: its first frame, then the error's kind and its text.
_TRACE = re.compile(
    r'(?P<frames>\n *(?P<place>File "[^\n]+)\n(?: [^\n]*\n)*)(?P<kind>[A-Za-z_][\w.]*): '
    r"(?P<words>(?:(?!\n\s*at |\n\n).)*)",
    re.DOTALL,
)
_OURS = f"{errors.__name__}."
#: Java's own words where no condition of Spark's stands before them.
_JAVA = re.compile(r"(For input string: )\"[^\n]*\"|(Text )'[^\n]*'(?= could not be parsed)")
#: What Spark says of a CSV file's first line: its names, the schema's, and the first that differ.
_HEADER = re.compile(
    r"(Header: )(.*?)(\s+Schema: )(.*?)(?:(\s+Expected: .*? but found: )(.*?))?(?=\s+CSV \w+: |\Z)", re.DOTALL
)


def without_values(text: str) -> str:
    """A message of Spark's, with its stack traces or without. Conditions, SQLSTATEs, kinds, places stay."""
    told = _CONDITION.sub(lambda found: " ".join([found[1], *_raised(found[2]), found[3]]), text)
    told = _OF_WORKER.sub(lambda found: " ".join([found[1], *_raised(found[2])]), told)
    told = _TRACE.sub(lambda trace: trace[0] if _is_ours(trace) else f"{trace['frames']}{trace['kind']}", told)
    told = _HEADER.sub(_header, told)
    return _JAVA.sub(lambda found: f"{found[1] or found[2]}…", told)


def _header(found: re.Match[str]) -> str:
    known = found[4].split(", ")
    differs = f"{found[5]}{list_known([found[6]], known)}" if found[5] else ""
    return f"{found[1]}{list_known(found[2].split(', '), known)}{found[3]}{found[4]}{differs}"


def _raised(words: str) -> list[str]:
    """What Lockstep says, or where in Python it came up."""
    traces = list(_TRACE.finditer(words))
    ours = [trace["words"].strip() for trace in traces if _is_ours(trace)]
    return ours[-1:] or [f"{trace['kind']} ({trace['place']})." for trace in traces]


def _is_ours(trace: re.Match[str]) -> bool:
    return trace["kind"].startswith(_OURS)
