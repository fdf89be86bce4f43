"""dlt, in an environment of its own: a Parquet file into PostgreSQL.  dlt_load.py PARQUET DATASET FORMAT FOLDER

The login comes from standard input. FORMAT: csv (COPY) or parquet (ADBC).
"""

import os
import sys
from collections.abc import Iterator

parquet, dataset, file_format, folder = sys.argv[1:]
os.environ.update(
    {
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "RUNTIME__LOG_LEVEL": "WARNING",
        "DLT_DATA_DIR": folder,
        "NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION": "true",
        "LOAD__WORKERS": "2",
        "EXTRACT__DATA_WRITER__FILE_MAX_ITEMS": "500000",
    }
)
import dlt  # type: ignore[import-not-found]  # noqa: E402 -- it reads its settings when it is imported
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402


@dlt.resource(name="flights", write_disposition="append")  # type: ignore[untyped-decorator]
def flights() -> Iterator[pa.Table]:
    for batch in pq.ParquetFile(parquet).iter_batches(65_536):
        yield pa.Table.from_batches([batch])


destination = dlt.destinations.postgres(sys.stdin.read())
pipeline = dlt.pipeline(dataset, pipelines_dir=folder, destination=destination, dataset_name=dataset)
pipeline.run(flights(), loader_file_format=file_format).raise_on_failed_jobs()
