"""What Spark says of a query that fails as it runs, without the values of rows that it quotes.

A message of Spark's ends in its SQLSTATE. Of class 22 ("data exception" in ISO/IEC 9075-2) and 23 it is about values,
of KD000 it quotes a line, and of 38, 39 and P0001 a function or a query of a user's says what it likes. All others
tell of files, memory, plans.
"""

from __future__ import annotations

import re

#: [CONDITION] words about a value. SQLSTATE: 22018
_CONDITION = re.compile(
    r"(\[[A-Z][A-Z0-9_.]+\]) ((?:(?!SQLSTATE: ).)*?)(SQLSTATE: (?:(?:22|23|38|39)[0-9A-Z]{3}|P0001|KD000))", re.DOTALL
)
#: The end of a trace of Python's: its last frame, then the error's kind and its text.
_TRACE = re.compile(r'(\n *(File "[^\n]+)\n(?: [^\n]*\n)*)([A-Za-z_][\w.]*): (?:(?!\n\s*at |\n\n).)*', re.DOTALL)
#: Java's own words where no condition of Spark's stands before them.
_JAVA = re.compile(r"(For input string: )\"[^\n]*\"|(Text )'[^\n]*'(?= could not be parsed)")


def without_values(text: str) -> str:
    """A message of Spark's, with its stack traces or without. Conditions, SQLSTATEs, kinds, places stay."""
    told = _CONDITION.sub(_without_words, text)
    told = _TRACE.sub(r"\1\3", told)
    return _JAVA.sub(lambda found: f"{found[1] or found[2]}…", told)


def _without_words(found: re.Match[str]) -> str:
    """What a condition is named, and where in Python it came up."""
    condition, words, state = found.groups()
    place = "".join(f"{trace[3]} ({trace[2]}). " for trace in _TRACE.finditer(words))
    return f"{condition} {place}{state}"
