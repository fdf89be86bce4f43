"""Commands in sentences: they are marked to be copied, and whatever else a sentence holds stays text."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("say `lockstep recover <x>`, then wait", "say <code>lockstep recover &lt;x&gt;</code>, then wait"),
        ("an odd ` <b>", "an odd ` &lt;b&gt;"),
        ("`a``b`", "<code>a</code><code>b</code>"),
        ("`<script>`", "<code>&lt;script&gt;</code>"),
        ("", ""),
    ],
)
def test_what_stands_between_backticks_is_a_command_and_nothing_else_is_markup(told: str, shown: str) -> None:
    from lockstep.ui._rendering import _with_code

    assert str(_with_code(told)) == shown
