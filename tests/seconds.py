"""Prints how long the tests of the last run took, by folder, by file and by test.

    python -m tests.seconds           # the 20 slowest files and tests
    python -m tests.seconds 100

Seconds are of the process that ran the test, with its fixtures; processes that run at once slow each other down.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

CACHE = "suite/seconds"  #: the name in pytest's cache
FILE = Path(__file__).parents[1] / ".pytest_cache/v" / CACHE


def load() -> dict[str, float]:
    """Seconds by test, of the last run."""
    seconds: dict[str, float] = json.loads(FILE.read_text())
    return seconds


def table(seconds: Mapping[str, float], group: Callable[[str], str], most: int) -> list[str]:
    """A line each for the slowest groups: seconds, share, tests, name."""
    groups: dict[str, list[float]] = defaultdict(list)
    for test, took in seconds.items():
        groups[group(test)].append(took)
    whole = sum(seconds.values()) or 1
    slowest = sorted(groups.items(), key=lambda item: -sum(item[1]))[:most]
    return [f"{sum(took):8.1f} s {sum(took) / whole:6.1%} {len(took):5} {name}" for name, took in slowest]


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seconds = load()
    print(f"{sum(seconds.values()):.0f} s in {len(seconds)} tests")
    print("by folder", *table(seconds, lambda test: "/".join(test.split("/")[:2]), 100), sep="\n")
    print("by file", *table(seconds, lambda test: test.partition("::")[0], most), sep="\n")
    print("by test", *table(seconds, lambda test: test, most), sep="\n")


if __name__ == "__main__":
    main()
