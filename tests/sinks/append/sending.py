"""Functions for FunctionSink, that any process can import."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pyarrow as pa

from lockstep.sdk import SinkEpoch, create_whole

FOLDER = "LOCKSTEP_TEST_SENT_TO"  #: an environment variable


def send(batch: pa.RecordBatch, epoch: SinkEpoch) -> None:
    """Each batch as a file of its own, durable when this returns."""
    folder, buffer = Path(os.environ[FOLDER]), pa.BufferOutputStream()
    with pa.ipc.new_file(buffer, batch.schema) as file:
        file.write(batch)
    drafts = folder / ".drafts"
    drafts.mkdir(exist_ok=True)
    create_whole(folder / f"{epoch.id}-{uuid.uuid4()}.arrow", buffer.getvalue().to_pybytes(), drafts)


def fail(batch: pa.RecordBatch, epoch: SinkEpoch) -> None:
    raise KeyError(batch["name"].to_pylist())


class Sender:
    def send(self, batch: pa.RecordBatch, epoch: SinkEpoch) -> None: ...
