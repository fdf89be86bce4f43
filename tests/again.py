"""Runs the tests that failed last time once more, one by one: what passes then is told as flaky, and is to be mended.

    python -m tests.again

As Apache Kafka's own build does (maxTestRetries, maxTestRetryFailures): on a machine that others load too, a test of
real servers may fail by the load alone. Many at once don't: then nothing is run again. Fails where a test fails again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.tiers import Tier

ROOT = Path(__file__).parents[1]
MOST = 5  #: tests that may fail by the load


def failed(root: Path) -> list[str]:
    """Of the last run, by pytest's own memory of it."""
    try:
        return sorted(json.loads((root / ".pytest_cache/v/cache/lastfailed").read_text()))
    except FileNotFoundError:
        return []


def run_again(root: Path, *options: str) -> int:
    """0 if every test that failed last time passes now."""
    names = failed(root)
    if not names:
        print("no test failed last time: something else did", file=sys.stderr)
        return 1
    if len(names) > MOST:
        print(f"{len(names)} tests failed, more than {MOST}: none is run again", file=sys.stderr)
        return 1
    print(f"running again what failed: {', '.join(names)}", file=sys.stderr)
    code = subprocess.run([sys.executable, "-m", "pytest", *options, *names], cwd=root, check=False).returncode
    if not code:
        print(*(f"flaky: {name}" for name in names), sep="\n", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(run_again(ROOT, "--tier", Tier.ALL))
