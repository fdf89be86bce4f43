"""Many small cases in one test: each is run, and a failure names every case that failed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

Test = Callable[..., None]


def cases(names: str, values: Iterable[Any]) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, within one test. The fixtures are those of the one test, but each case has a
    `monkeypatch` that ends with it, and a `tmp_path` of its own."""
    given = [name.strip() for name in names.split(",")]

    def decorate(test: Test) -> Test:
        taken = inspect.signature(test).parameters

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            subtests = fixtures["subtests"]
            around = {name: value for name, value in fixtures.items() if name in taken}
            for number, value in enumerate(values):
                case = dict(zip(given, value if len(given) > 1 else [value], strict=True))
                if "tmp_path" in around:
                    around["tmp_path"] = fixtures["tmp_path"] / f"case{number}"
                    around["tmp_path"].mkdir()
                with subtests.test(f"{names}={value!r}"), pytest.MonkeyPatch.context() as patch:
                    if "monkeypatch" in around:
                        around["monkeypatch"] = patch
                    test(**around, **case)

        asked = [one for name, one in taken.items() if name not in given]
        if "subtests" not in taken:
            asked.append(inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD))
        run.__signature__ = inspect.Signature(asked)  # type: ignore[attr-defined]
        return run

    return decorate
