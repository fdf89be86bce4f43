"""A compaction's commit meets epochs, other people's commits, lost answers and fences."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lockstep.errors import CompactionOvertaken, CompactionRefused
from lockstep.sinks import compacting
from lockstep.sinks.adopting import Answer
from lockstep.sinks.compacting import CompactingTable, Compaction, Replacement
from lockstep.sinks.rewriting import rewrite
from tests.sinks.compaction.lakes import EVERYTHING, ROWS, Lake

pytestmark = pytest.mark.apart
Send = Callable[[Any, Replacement], Answer]
Meeting = Callable[[Send, Any, Replacement], Answer]


@pytest.fixture
def full(lake: Lake) -> Lake:
    lake.fill(1, 2, 3)
    return lake


def compact_meeting(lake: Lake, meeting: Meeting, times: int = 1) -> Compaction:
    """The first commits that the compaction sends go by `meeting`."""

    def act(table: CompactingTable[Any]) -> Compaction:
        real, left = table.replace, [times]

        def replace(head: Any, replacement: Replacement) -> Answer:
            left[0] -= 1
            return meeting(real, head, replacement) if left[0] >= 0 else real(head, replacement)

        table.replace = replace  # type: ignore[method-assign]
        return compacting.compact(table, EVERYTHING)

    return lake.with_table(act)


def first(deed: Callable[[], object]) -> Meeting:
    """Somebody else's commit is before ours."""

    def meeting(send: Send, head: Any, replacement: Replacement) -> Answer:
        deed()
        return send(head, replacement)

    return meeting


def test_an_epoch_and_rows_of_others_that_come_first_stay_beside_what_is_compacted(full: Lake) -> None:
    def act() -> None:
        full.publish(4)
        full.foreign_append()

    done = compact_meeting(full, first(act))
    assert (done.files_before, done.files_after) == (6, 1)
    files = list(full.files().values())
    assert sum(files) == 4 * ROWS + 10 == sum(full.rows().values())
    assert files.count(ROWS // 2) >= 2 and 3 * ROWS in files


@pytest.mark.parametrize("deed", ["foreign_delete", "foreign_compaction"])
def test_a_compaction_whose_files_others_change_first_gives_up(full: Lake, deed: str) -> None:
    with pytest.raises(CompactionOvertaken, match="of the 6 files were compacted, deleted from or removed"):
        compact_meeting(full, first(getattr(full, deed)))
    assert sum(full.files().values()) == (2 if deed == "foreign_delete" else 3) * ROWS
    assert not any("/compacted/" in path for path in full.files())


def test_a_lost_answer_is_found_out_by_looking_again(full: Lake) -> None:
    for number, applied in enumerate((True, False), 4):
        full.fill(number)
        before = full.rows()

        def meeting(send: Send, head: Any, replacement: Replacement, applied: bool = applied) -> Answer:
            if applied:
                assert send(head, replacement) is Answer.APPLIED
            return Answer.UNKNOWN

        assert compact_meeting(full, meeting).files_after == 1
        assert full.rows() == before and len(full.files()) == 1, f"applied: {applied}"


def test_a_commit_that_comes_late_changes_nothing(full: Lake) -> None:
    before = full.rows()

    def act(table: CompactingTable[Any]) -> Answer:
        sent: list[tuple[Any, Replacement]] = []
        real = table.replace

        def replace(head: Any, replacement: Replacement) -> Answer:
            sent.append((head, replacement))
            return Answer.UNKNOWN if len(sent) == 1 else real(head, replacement)

        table.replace = replace  # type: ignore[method-assign]
        compacting.compact(table, EVERYTHING)
        return real(*sent[0])

    assert full.with_table(act) is not Answer.APPLIED
    assert full.rows() == before and len(full.files()) == 1


def test_a_fenced_compaction_gives_up_whichever_state_it_goes_on_from(full: Lake) -> None:
    before, files = full.rows(), full.files()
    with pytest.raises(CompactionOvertaken, match="another compaction was committed meanwhile, or recovery"):
        compact_meeting(full, first(lambda: full.with_table(lambda other: compacting.fence(other) and None)))
    assert full.rows() == before and full.files() == files
    assert full.compact().files_after == 1, "the next one finds the table as it is"


def test_of_two_compactions_one_is_committed(full: Lake) -> None:
    before = full.rows()
    with pytest.raises(CompactionOvertaken, match="another compaction was committed"):
        compact_meeting(full, first(full.compact))
    assert full.rows() == before and list(full.files().values()) == [3 * ROWS]


def test_a_table_that_never_stands_still_is_given_way_to(full: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compacting, "_ROUNDS", 2)
    with pytest.raises(CompactionOvertaken, match="2 commits of the compaction weren't applied: somebody writes"):
        compact_meeting(full, first(full.foreign_append), times=2)
    assert sum(full.files().values()) == 3 * ROWS + 20
    assert full.compact().files_after == 1


def test_what_comes_out_otherwise_than_it_went_in_is_never_committed(
    full: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = full.files()

    def act(table: CompactingTable[Any]) -> Compaction:
        real = table.open_file

        def open_file(head: Any, path: str) -> Any:
            file = real(head, path)
            if "/compacted/" not in path:
                return file
            rows = pq.read_table(io.BytesIO(file.read()))
            damaged, data = (
                rows.set_column(0, rows.field(0), pc.add(rows["id"], pa.scalar(1, pa.int64()))),
                io.BytesIO(),
            )
            pq.write_table(damaged, data)
            data.seek(0)
            return data

        table.open_file = open_file  # type: ignore[method-assign]
        return compacting.compact(table, EVERYTHING)

    with pytest.raises(CompactionRefused, match="the table was left as it is"):
        full.with_table(act)
    assert full.files() == files
    real = rewrite
    monkeypatch.setattr(compacting, "rewrite", lambda sources, target: real(sources[1:], target))
    with pytest.raises(CompactionRefused, match="the table says 60 of them"):
        full.compact()
    assert full.files() == files
