"""Rows of one table whose key stands in another one, both in this process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_PLACE = "lockstep_place"


def among(rows: pa.Table, others: pa.Table, key: Sequence[str]) -> pa.ChunkedArray | pa.Array:
    """Of each of `rows`, whether its key, which has no null, is one of `others`', under the same types."""
    if len(key) == 1:
        return pc.is_in(rows[key[0]], others[key[0]].combine_chunks())
    places = pa.array(np.arange(len(rows)))
    found = rows.select(key).append_column(_PLACE, places).join(others.select(key), list(key), join_type="left semi")
    mask = np.zeros(len(rows), dtype=bool)
    mask[np.asarray(found[_PLACE])] = True
    return pa.array(mask)
