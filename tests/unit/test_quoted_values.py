"""What stays of a failing function's error, in the words of each Spark; no Spark is started."""

from __future__ import annotations

import pytest

from lockstep.spark._quoted_values import without_values

RAISED = """Traceback (most recent call last):
  File "/app/rules.py", line 7, in check
    raise KeyError(row) from None
KeyError: 'row 1

paragraph 1
 at home'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/app/rules.py", line 9, in rule
    raise ValueError(f"of {row}") from error
ValueError: of row 1

paragraph 2
"""
OURS = """Traceback (most recent call last):
  File "/app/lockstep/compute/_lookups.py", line 3, in ask
    raise errors.LookupFailed("no answer, HTTP 503")
lockstep.errors.LookupFailed: no answer, HTTP 503
"""
JAVA = "\n\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:581)\n"


def in_each_spark(trace: str) -> list[str]:
    """What a client, a job that was aborted and a log have of it: of 4.0, and of what came later."""
    client = "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
    condition = f"[PYTHON_EXCEPTION] it failed: {trace} SQLSTATE: 38000"
    return [
        f"{client}{trace}",
        f"Lost task 0.0: org.apache.spark.api.python.PythonException: {trace}\n{JAVA}\nDriver stacktrace:{JAVA}",
        f"{client}{condition}",
        f"Lost task 0.0: org.apache.spark.api.python.PythonException: {condition}\n{JAVA}",
    ]


def test_of_a_functions_error_stay_kind_and_place_and_no_word(subtests: pytest.Subtests) -> None:
    for said in in_each_spark(RAISED):
        with subtests.test(said=said):
            told = without_values(said)
            assert 'KeyError (File "/app/rules.py", line 7, in check).' in told
            assert 'ValueError (File "/app/rules.py", line 9, in rule).' in told
            assert not any(word in told for word in ("row 1", "paragraph", "home", "raise"))
            assert told.count(JAVA) == said.count(JAVA)


def test_what_lockstep_says_on_a_worker_stays(subtests: pytest.Subtests) -> None:
    for said in in_each_spark(OURS):
        with subtests.test(said=said):
            told = without_values(said)
            assert "no answer, HTTP 503" in told
            assert "Traceback" not in told
