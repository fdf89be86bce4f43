"""Markers in a table's properties: whole ones, folded ones, and what becomes of them when they are many."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.errors import OutcomeUnknown
from lockstep.sinks.handles import SinkName
from lockstep.sinks.iceberg import _markers
from lockstep.sinks.iceberg._markers import MAX_UNFOLDED, EpochMarker, TableMarkers

OWNER = SinkName("11111111-2222-4333-8444-555555555555", "pipe", "lake")
FIRST = datetime(2013, 1, 1, tzinfo=UTC)


class Properties:
    """Those of a table, and the files below it, as commits change them."""

    def __init__(self) -> None:
        self.properties: dict[str, str] = {"owner": "somebody"}
        self.files: dict[str, bytes] = {}
        self.reads = 0

    def markers(self, owner: SinkName = OWNER) -> TableMarkers:
        return TableMarkers(owner, self.properties, self._read)

    def show(self, marker: EpochMarker, owner: SinkName = OWNER) -> None:
        folding = self.markers(owner).add(marker)
        if folding.file is not None:
            self.files[folding.file[0]] = folding.file[1]
        self.properties.update(folding.updates)
        for name in folding.removals:
            del self.properties[name]

    def _read(self, path: str) -> bytes:
        self.reads += 1
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]


def marker(epoch: int, token: int = 0, *, span: bool = True) -> EpochMarker:
    start = FIRST + timedelta(days=epoch)
    told = f"{start.isoformat()}/{(start + timedelta(days=1)).isoformat()}" if span else None
    return EpochMarker(epoch, token or epoch + 7, f"{epoch:064x}", told, 1000 + epoch, 2, 50)


def test_markers_of_a_cursor_are_found_however_many_there_are_where_some_took_anothers_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What took another's place has a span without a time, and a cursor's others have none."""
    monkeypatch.setattr(_markers, "MAX_UNFOLDED", 20)
    table, again = Properties(), {5: "epoch/2/1", 50: "epoch/5/2"}
    for epoch in range(1, 121):
        table.show(replace(marker(epoch, span=False), span=again.get(epoch)))
    found = table.markers()
    assert len(found.folded) >= 3
    for epoch, span in again.items():
        by_epoch, by_span = found.find(epoch), found.find_span(span)
        assert by_epoch == by_span and by_epoch is not None and by_epoch.span == span
    assert found.find_span("epoch/3/1") is None
    assert found.find_span(marker(7).span or "") is None
    assert found.find(7) == marker(7, span=False)


def test_every_marker_is_found_by_epoch_and_by_range_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_markers, "MAX_UNFOLDED", 20)
    table, order = Properties(), list(range(1, 201))
    random.Random(7).shuffle(order)
    for token, epoch in enumerate(order, 1):
        table.show(marker(epoch, token))
    found = table.markers()
    assert len(found.folded) >= 7 and len(found.unfolded) <= 40
    for token, epoch in enumerate(order, 1):
        assert found.find(epoch) == marker(epoch, token)
    for epoch in range(1, 201, 19):
        span = marker(epoch).span
        assert span is not None and found.find_span(span) == found.find(epoch)
    assert found.find(201) is None and found.find(0) is None
    assert [one.epoch for one in found] == list(range(1, 201))


def test_the_newest_by_epoch_and_by_token_and_new_ones_are_looked_for_in_no_file() -> None:
    table = Properties()
    table.show(marker(5000, 1))
    for epoch in range(1, 600):
        table.show(marker(epoch, epoch + 1))
    found = table.markers()
    assert [one.epoch for one in found.newest()] == [5000, 599]
    assert found.find(7000) is None and found.find_span(marker(7000).span or "") is None
    assert table.reads == 0


@pytest.mark.parametrize("damage", ["gone", "altered"])
def test_a_folded_marker_whose_file_is_damaged_proves_nothing(damage: str) -> None:
    table = Properties()
    for epoch in range(1, 2 * MAX_UNFOLDED + 2):
        table.show(marker(epoch))
    [path] = table.files
    if damage == "gone":
        del table.files[path]
    else:
        table.files[path] = table.files[path].replace(b'"token":8', b'"token":9')
    with pytest.raises(OutcomeUnknown, match="markers/"):
        table.markers().find(1)
    assert table.markers().find(2 * MAX_UNFOLDED + 1) == marker(2 * MAX_UNFOLDED + 1)


def test_another_sinks_markers_are_not_ones_own() -> None:
    table, other = Properties(), SinkName(OWNER.deployment, OWNER.pipeline, "other")
    table.show(marker(1))
    table.show(marker(1, 99), other)
    assert table.markers().find(1) == marker(1)
    assert table.markers(other).find(1) == marker(1, 99)
    assert list(table.markers(SinkName(OWNER.deployment, "pipe2", "lake"))) == []
