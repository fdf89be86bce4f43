"""`make bench-rivals`: what users would take instead, on the same work: how fast, and what faults leave of the rows.

Flink needs a JDK and Maven, for its jars; dlt an environment of its own. What can't be had is left out, and told.
"""

from __future__ import annotations

import typer

from benchmarks.rivals import faults, speed

app = typer.Typer(pretty_exceptions_enable=False, no_args_is_help=True, help=__doc__)
app.command("faults")(faults.main)
app.command("speed")(speed.main)

if __name__ == "__main__":
    app()
