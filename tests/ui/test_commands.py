"""Sentences: commands in them are marked to be copied, who is named is linked, and all else in them stays text."""

from __future__ import annotations

from urllib.parse import quote

from tests.cases import cases


@cases(
    "told, shown",
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


@cases(
    "actor, led",
    [
        ("airflow:orders/manual__2024-06-01T00:00:00+00:00/prepare.warehouse#2", "prepare.warehouse"),
        ("airflow:lockstep_recovery/scheduled 1/recover[3]#1", "recover/mapped/3"),
        ("airflow-ui:operator", None),
        ("somebody@host/4711", None),
    ],
)
def test_the_history_leads_to_the_task_that_made_it(actor: str, led: str | None) -> None:
    from lockstep.ui._rendering import Links

    found = Links("/air/lockstep").task(actor)
    dag, _, run = actor.removeprefix("airflow:").partition("/")
    quoted = quote(run.rpartition("/")[0], safe="")
    assert found == (f"/air/dags/{dag}/runs/{quoted}/tasks/{led}" if led else None)
