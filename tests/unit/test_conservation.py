"""What a pipeline may say of how its rows travel, and what is refused before anything is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lockstep import Pipeline, rows_of
from lockstep.audits import conserved, not_null
from lockstep.audits.audit import audit_from_spec, outputs_conserved
from lockstep.conservation import Conservation
from lockstep.errors import InvalidPipeline
from lockstep.sinks import FileSink
from lockstep.sources import FileSource


def pipeline_of(*declared: Conservation) -> Pipeline:
    sources = {name: FileSource(f"landing/{name}/{{interval_start:%Y-%m-%d}}.csv", schema="id INT") for name in "ab"}
    sinks = [FileSink(name, output=name, path=f"out/{name}") for name in ("paid", "refunds")]
    return Pipeline("orders", sources, lambda inputs: inputs, sinks, conservation=declared)


Said = Callable[[Conservation], Conservation]


def test_what_can_not_be_meant_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Said, str]] = [
        (lambda rows: rows.into(), "say once which outputs"),
        (lambda rows: rows.into("paid", "paid"), "say once which outputs"),
        (lambda rows: rows.into("paid").into("refunds"), "say once which outputs"),
        (lambda rows: rows.filtered("", "id = 1"), "a name of its own, not ''"),
        (lambda rows: rows.filtered("in", "id = 1"), "a name of its own, not 'in'"),
        (lambda rows: rows.filtered("odd", "id = 1").filtered("odd", "id = 3"), "a name of its own, not 'odd'"),
        (lambda rows: rows.filtered("paid", "id = 1").into("paid"), r"\['paid'\] is what something else is counted as"),
        (lambda rows: rows.exploded("x").exploded("y"), "say exploded once"),
        (lambda rows: rows.joined("full", key="id"), "one of one_to_one, many_to_one, left, not 'full'"),  # type: ignore[arg-type]
        (lambda rows: rows.joined("many_to_one", key=[]), "at least one column"),
        (lambda rows: rows.joined("left", key="id"), "of a left join say unmatched="),
        (lambda rows: rows.joined("one_to_one", key="id"), "partner= names the other source"),
        (lambda rows: rows.joined("many_to_one", key="id", partner="b"), "partner= names the other source"),
        (lambda rows: rows.joined("one_to_one", key="id", partner="b").filtered("odd", "id = 1"), "every row of both"),
        (lambda rows: rows.exploded("x").joined("one_to_one", key="id", partner="b"), "every row of both"),
        (lambda rows: rows.joined("many_to_one", key="id").aggregated("id", count="n"), "joined or aggregated"),
        (lambda rows: rows.aggregated("id", count="n").joined("many_to_one", key="id"), "joined or aggregated"),
    ]
    for said, told in cases:
        whole = rf"^conservation of a into .*{told}"
        with subtests.test(told=told), pytest.raises(InvalidPipeline, match=whole):
            said(rows_of("a"))


def test_sources_are_named_each_once(subtests: pytest.Subtests) -> None:
    for sources in ((), ("a", "a")):
        with subtests.test(sources=sources), pytest.raises(InvalidPipeline, match="name the sources whose rows travel"):
            rows_of(*sources)


def test_a_pipeline_refuses_what_it_does_not_have(subtests: pytest.Subtests) -> None:
    cases: list[tuple[list[Conservation], str]] = [
        ([rows_of("a")], "doesn't say where they go"),
        ([rows_of("a", "c").into("paid")], r"speaks of sources \['c'\], it has \['a', 'b'\]"),
        ([rows_of("a").into("paid", "gifts")], r"speaks of outputs \['gifts'\], it has \['paid', 'refunds'\]"),
        ([rows_of("a").joined("one_to_one", key="id", partner="c").into("paid")], r"speaks of sources \['c'\]"),
        ([rows_of("a").into("paid"), rows_of("a").filtered("odd", "id = 1").into("paid")], "is declared twice"),
        ([rows_of("b").into("paid"), rows_of("a").joined("one_to_one", key="id", partner="b").into("paid")], "twice"),
    ]
    for declared, told in cases:
        whole = rf"^pipeline orders: conservation of .*{told}"
        with subtests.test(told=told), pytest.raises(InvalidPipeline, match=whole):
            pipeline_of(*declared)


def test_an_audit_asks_of_what_is_said_and_a_plan_freezes_it() -> None:
    asked = conserved("paid", "refunds")
    assert audit_from_spec(asked.spec()) == asked
    assert outputs_conserved([asked.spec(), not_null("paid", "id").spec()]) == ("paid", "refunds")
    said = rows_of("a").into("paid")
    with pytest.raises(InvalidPipeline, match=r"asks whether rows were conserved into \['refunds'\]: say in"):
        replace(pipeline_of(said), audits=[asked])
    replace(pipeline_of(said, rows_of("b").into("refunds")), audits=[asked])


def test_a_one_to_one_join_says_as_much_of_the_partner() -> None:
    said: Any = rows_of("a").joined("one_to_one", key={"id": "lower(id)"}, partner="b").into("paid")
    assert said.mirrored == Conservation(("b",), ("paid",), key={"id": "lower(id)"})
    assert rows_of("a").joined("many_to_one", key="id").into("paid").mirrored is None
    pipeline_of(said, rows_of("b").into("refunds"))
