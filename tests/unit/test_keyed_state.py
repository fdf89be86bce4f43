"""What a definition of keyed state may say, and how it stands in JSON."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep import KeyedState
from lockstep.errors import InvalidPipeline
from lockstep.wal.request import StateRequest
from lockstep.wal.state_manifest import StateVersion, version_of, version_to_json
from lockstep.wal.state_staging import WrittenState

SCHEMA, KEY = "k BIGINT, began TIMESTAMP, due TIMESTAMP", ("k", "began")
PLAIN = KeyedState(SCHEMA, KEY, 4, "due")
FOUND = KeyedState(SCHEMA, KEY, 4, "due", ["k"], self_expiring=True)


def test_what_older_versions_did_not_have_is_only_said_where_it_is_asked_for() -> None:
    told = StateRequest("file:///s", {"plain": PLAIN, "found": FOUND}, {}, {}).to_json()
    assert set(told["declared"]["plain"]) == {"schema", "key", "buckets", "expires"}
    assert StateRequest.from_json(told).declared == {"plain": PLAIN, "found": FOUND}
    for one in (PLAIN, FOUND):
        version = StateVersion(SCHEMA, KEY, 4, "due", (), tuple(one.found_by))
        assert version_of(version_to_json(version)) == version
        assert ("found_by" in version_to_json(version)) == (one is FOUND)
        wrote = WrittenState(SCHEMA, KEY, 4, "due", frozenset(), frozenset(), 0, tuple(one.found_by), one.self_expiring)
        assert WrittenState.from_json(wrote.to_json()) == wrote
        assert ("found_by" in wrote.to_json()) == ("self_expiring" in wrote.to_json()) == (one is FOUND)


def test_a_definition_that_makes_no_sense_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"found_by": ["due"]}, "must name columns of the key"),
        ({"found_by": ["k", "k"]}, "each once"),
        ({"self_expiring": True}, "needs expires="),
    ]
    for settings, told in cases:
        with subtests.test(settings=settings, told=told), pytest.raises(InvalidPipeline, match=told):
            KeyedState(SCHEMA, KEY, **settings)
