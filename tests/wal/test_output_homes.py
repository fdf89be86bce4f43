"""An output whose files live below the table that adopts them: sealed, read and let go as the others are."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.errors import FormatUnknown, StageFailed, StagingRefused, WalCorrupt
from lockstep.output_home import OutputHome
from lockstep.wal.digest import digest_batches
from lockstep.wal.manifest import HOME_FORMAT, MANIFEST_FORMAT, Manifest, SourceCount, canonical
from lockstep.wal.reading import OutputBatches
from lockstep.wal.staging import Staging
from tests.wal.conftest import DEPLOYMENT, Staged, rows

EPOCH = "lockstep_epoch"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "a table"


@pytest.fixture
def home(table: Path) -> OutputHome:
    return OutputHome(str(table), EPOCH)


def marked(found: pa.Table, epoch: int = 3) -> pa.Table:
    return found.append_column(EPOCH, pa.array([epoch] * found.num_rows, pa.int64()))


def folder_of(table: Path, token: int = 17, epoch: int = 3) -> Path:
    return table / "_lockstep" / DEPLOYMENT / "flights" / str(epoch) / str(token)


def write(table: Path, *parts: pa.Table, token: int = 17) -> list[Path]:
    """The output `delays` as Spark leaves it."""
    folder = folder_of(table, token) / "delays"
    folder.mkdir(parents=True)
    paths = [folder / f"part-{number:05}.parquet" for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        pq.write_table(part, path)
    return paths


@pytest.fixture
def staged_apart(staging: Staging, root: Path) -> Staged:
    """Flights in staging; delays are another test's to write."""
    found = Staged(staging, root)
    staging.create(found.folder)
    found.write("flights", rows(300), rows(200, 300))
    return found


def seal(staged: Staged, home: OutputHome, delays: int = 40) -> Manifest:
    return staged.staging.seal(
        staged.folder,
        deployment=DEPLOYMENT,
        pipeline="flights",
        epoch=3,
        token=17,
        outputs=("flights", "delays"),
        observed={"flights": 500, "delays": delays},
        sources={"landing": SourceCount(501, 1)},
        homes={"delays": home},
    )


def delays_of(staged: Staged, manifest: Manifest) -> OutputBatches:
    [found] = staged.staging.open(staged.folder, manifest.hash).outputs(["delays"])
    return found


def test_its_rows_are_read_as_those_of_any_other_output(staged_apart: Staged, table: Path, home: OutputHome) -> None:
    write(table, marked(rows(25)), marked(rows(15, 25)))
    manifest = seal(staged_apart, home)
    assert pa.Table.from_batches(list(delays_of(staged_apart, manifest))) == rows(40)
    assert manifest.outputs["delays"].digest == digest_batches(rows(0).schema, rows(40).to_batches()).hexdigest()
    assert manifest.outputs["flights"].home is None
    staged_apart.staging.open(staged_apart.folder, manifest.hash).check()


def test_its_files_are_named_for_whoever_adopts_them(staged_apart: Staged, table: Path, home: OutputHome) -> None:
    paths = write(table, marked(rows(25)), marked(rows(15, 25)))
    found = delays_of(staged_apart, seal(staged_apart, home))
    assert [table / file.path for file in found.files] == paths
    assert [file.uri for file in found.files] == [f"file://{path}" for path in paths]
    assert [file.bytes for file in found.files] == [path.stat().st_size for path in paths]
    assert [(file.rows, footer.num_columns) for file, footer in found.footers()] == [(25, 4), (15, 4)]
    assert not any("=" in file.path for file in found.files), "readers would take that for a partition"


def test_an_empty_output_is_at_home_too(staged_apart: Staged, table: Path, home: OutputHome) -> None:
    write(table, marked(rows(0)))
    found = delays_of(staged_apart, seal(staged_apart, home, delays=0))
    assert (list(found), found.rows, [file.rows for file in found.files]) == ([], 0, [0])


@pytest.mark.parametrize(
    "wrong",
    [
        rows(40),
        marked(rows(40), epoch=4),
        rows(40).append_column(EPOCH, pa.array([*[3] * 39, None], pa.int64())),
        rows(40).append_column(EPOCH, pa.array([3] * 40, pa.int32())),
        marked(rows(40)).select([EPOCH, "id", "tail", "delay"]),
    ],
    ids=["none", "another", "null in one row", "another type", "not the last"],
)
def test_files_whose_rows_do_not_name_the_epoch_are_not_sealed(
    staged_apart: Staged, table: Path, home: OutputHome, wrong: pa.Table
) -> None:
    write(table, wrong)
    with pytest.raises(StageFailed, match=EPOCH):
        seal(staged_apart, home)


@pytest.mark.parametrize("counted", [39, 41, 0])
def test_files_that_are_not_what_spark_counted_are_not_sealed(
    staged_apart: Staged, table: Path, home: OutputHome, counted: int
) -> None:
    write(table, marked(rows(40)))
    with pytest.raises(StageFailed, match="observed"):
        seal(staged_apart, home, delays=counted)


def test_an_output_that_was_not_written_at_home_is_not_sealed(staged_apart: Staged, home: OutputHome) -> None:
    with pytest.raises(Exception, match="delays"):
        seal(staged_apart, home)


@pytest.mark.parametrize("harm", ["changed", "cut", "gone", "other rows"])
def test_a_file_that_is_not_as_it_was_sealed_is_found(
    staged_apart: Staged, table: Path, home: OutputHome, harm: str
) -> None:
    [path] = write(table, marked(rows(40)))
    found = delays_of(staged_apart, seal(staged_apart, home))
    data = path.read_bytes()
    match harm:
        case "changed":
            path.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
        case "cut":
            path.write_bytes(data[:-1])
        case "gone":
            path.unlink()
        case "other rows":
            pq.write_table(marked(rows(39)), path)
    with pytest.raises(WalCorrupt):
        found.check()
    with pytest.raises(WalCorrupt):
        list(found)
    if harm != "changed":
        with pytest.raises(WalCorrupt):
            list(found.footers())


# --- the manifest ----------------------------------------------------------------------------------------------------


def test_only_a_manifest_that_speaks_of_a_home_has_the_new_format(
    staged_apart: Staged, table: Path, home: OutputHome
) -> None:
    write(table, marked(rows(40)))
    manifest = seal(staged_apart, home)
    assert json.loads(manifest.to_bytes())["format"] == HOME_FORMAT
    again = Manifest.from_bytes(manifest.to_bytes())
    assert (again, again.hash, again.outputs["delays"].home) == (manifest, manifest.hash, home)
    plain = replace(manifest, outputs={name: replace(output, home=None) for name, output in manifest.outputs.items()})
    assert json.loads(plain.to_bytes())["format"] == MANIFEST_FORMAT


def test_a_newer_format_is_refused_by_name(staged_apart: Staged, table: Path, home: OutputHome) -> None:
    write(table, marked(rows(40)))
    value = json.loads(seal(staged_apart, home).to_bytes())
    with pytest.raises(FormatUnknown, match=f"up to {HOME_FORMAT}"):
        Manifest.from_bytes(canonical({**value, "format": HOME_FORMAT + 1}))


@pytest.mark.parametrize("damage", [{}, {"table": "/x"}, {"table": 1, "epoch_column": "e"}, []])
def test_a_damaged_home_is_a_damaged_manifest(
    staged_apart: Staged, table: Path, home: OutputHome, damage: object
) -> None:
    write(table, marked(rows(40)))
    value = json.loads(seal(staged_apart, home).to_bytes())
    value["outputs"]["delays"]["home"] = damage
    with pytest.raises(WalCorrupt):
        Manifest.from_bytes(canonical(value))


# --- letting go ------------------------------------------------------------------------------------------------------


def test_an_executions_files_are_discarded_and_nobody_elses(staging: Staging, table: Path, home: OutputHome) -> None:
    for token in (17, 18):
        write(table, marked(rows(4)), token=token)
    (folder_of(table).parent / "somebody's").mkdir()
    (table / "data.parquet").write_bytes(b"the table's own")
    there = staging.home(home, DEPLOYMENT, "flights")
    assert there.tokens(3) == [17, 18]
    for _ in range(2):
        there.discard(3, 17)
    assert there.tokens(3) == [18]
    assert sorted(path.name for path in folder_of(table).parent.iterdir()) == ["18", "somebody's"]
    assert (table / "data.parquet").exists()
    assert there.tokens(4) == []


def test_a_discarded_folder_with_a_link_in_it_is_left_alone(
    staging: Staging, table: Path, home: OutputHome, tmp_path: Path
) -> None:
    [path] = write(table, marked(rows(4)))
    (path.parent / "link").symlink_to(tmp_path)
    with pytest.raises(StagingRefused, match="link"):
        staging.home(home, DEPLOYMENT, "flights").discard(3, 17)
    assert path.exists()
