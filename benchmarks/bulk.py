"""Each target's own bulk loader, fed from a file that was made beforehand: what the target can take."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg2
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pymysql
from psycopg2 import sql

from benchmarks.paths import fresh_table
from stack.mariadb import LOGIN, MariaDbServer
from stack.postgres import HOST

MYSQL_TABLE = (
    "id bigint, month int, day int, dep_time int, dep_delay int, arr_delay int, carrier longtext, flight int, "
    "tailnum longtext, origin longtext, dest longtext, time_hour datetime(6), lockstep_epoch bigint"
)
REQUEST_LINES = 500


def copy(dsn: str, encoded: Path, rows: int) -> float:
    """COPY BINARY, one session, one commit."""
    fresh_table(dsn, "bulk")
    started = time.perf_counter()
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        with encoded.open("rb") as file:
            cursor.copy_expert("COPY bulk FROM STDIN (FORMAT binary)", file, size=1 << 18)
        _require(cursor.rowcount, rows)
        connection.commit()
        return time.perf_counter() - started


def forget_table(dsn: str, name: str) -> None:
    """Away with it; the sink makes its own."""
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))


def load_data(server: MariaDbServer, text: Path, rows: int) -> float:
    """LOAD DATA LOCAL, one session, one commit."""
    server.create_database("bulk")
    server.execute("DROP TABLE IF EXISTS bulk.bulk")
    server.execute(f"CREATE TABLE bulk.bulk ({MYSQL_TABLE})")
    login = urlsplit(server.dsn())
    connection = pymysql.connect(
        host=HOST, port=server.port, user=LOGIN, password=login.password or "", database="bulk", local_infile=True
    )
    started = time.perf_counter()
    with closing(connection), connection.cursor() as cursor:
        _require(cursor.execute("LOAD DATA LOCAL INFILE %s INTO TABLE bulk", (str(text),)), rows)
        connection.commit()
        return time.perf_counter() - started


def write_text(table: pa.Table, path: Path) -> Path:
    """What LOAD DATA reads by default: tabs, \\N for null; no value here needs an escape."""
    text = pc.strftime(table["time_hour"], format="%Y-%m-%d %H:%M:%S")
    printable = table.set_column(table.schema.get_field_index("time_hour"), "time_hour", text)
    columns = {name: pc.fill_null(printable[name].cast(pa.string()), "\\N") for name in printable.column_names}
    columns["lockstep_epoch"] = pa.array(["1"] * table.num_rows)
    options = pv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    pv.write_csv(pa.table(columns), path, options)
    return path


def write_parquet(table: pa.Table, folder: Path) -> float:
    """One zstd file, durable."""
    folder = _empty(folder)
    started = time.perf_counter()
    pq.write_table(table, folder / "rows.parquet", compression="zstd")
    _sync(folder)
    return time.perf_counter() - started


def write_dataset(table: pa.Table, folder: Path) -> float:
    """A folder a carrier, durable."""
    folder = _empty(folder)
    started = time.perf_counter()
    options = ds.ParquetFileFormat().make_write_options(compression="zstd")
    ds.write_dataset(
        table, folder, format="parquet", partitioning=["carrier"], partitioning_flavor="hive", file_options=options
    )
    _sync(folder)
    return time.perf_counter() - started


def write_csv(table: pa.Table, folder: Path) -> float:
    """One file, durable."""
    folder = _empty(folder)
    started = time.perf_counter()
    pv.write_csv(table, folder / "rows.csv")
    _sync(folder)
    return time.perf_counter() - started


def write_lines(table: pa.Table, path: Path) -> Path:
    """A JSON object a row."""
    with path.open("w") as file:
        for batch in table.to_batches(10_000):
            file.writelines(json.dumps(row, default=str) + "\n" for row in batch.to_pylist())
    return path


def write_to_null(ready: Path) -> float:
    started = time.perf_counter()
    with ready.open("rb") as source, Path(os.devnull).open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 18)
    return time.perf_counter() - started


@contextmanager
def stdout_to_null() -> Iterator[None]:
    """What this process prints goes nowhere."""
    sys.stdout.flush()
    kept = os.dup(1)
    with Path(os.devnull).open("wb") as null:
        os.dup2(null.fileno(), 1)
        try:
            yield
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)


def send(ready: Path, url: str) -> float:
    """Every byte, an end line, the receiver's word for it."""
    parts = urlsplit(url)
    started = time.perf_counter()
    with closing(socket.create_connection((parts.hostname or "", parts.port or 0))) as connection:
        with ready.open("rb") as file:
            connection.sendfile(file)
        connection.sendall(b'{"lockstep": {"end": 0}}\n')
        with connection.makefile("rb") as answers:
            _require(answers.readline(), b"ok\n")
    return time.perf_counter() - started


def post(ready: Path, url: str) -> float:
    """One request after the other, as many lines in each as the sink puts there."""
    started = time.perf_counter()
    with httpx.Client() as client, ready.open("rb") as file:
        while body := b"".join(line for _, line in zip(range(REQUEST_LINES), file, strict=False)):
            client.post(url, content=body).raise_for_status()
    return time.perf_counter() - started


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _sync(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        number = os.open(path, os.O_RDONLY)
        os.fsync(number)
        os.close(number)


def _require(found: object, wanted: object) -> None:
    if found != wanted:
        raise SystemExit(f"{found!r} arrived, {wanted!r} was expected")
