"""docs/architecture.md names the modules through which a row goes, in their order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.spark.followed_row import PHASES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"


def test_the_page_names_the_modules_that_a_row_goes_through(
    spark_connect: str, ledger_dsn: str, warehouse_dsn: str, tmp_path: Path
) -> None:
    """`LOCKSTEP_WRITE_DOCS=1` writes the lists of the page anew."""
    command = [
        sys.executable,
        "-m",
        "tests.spark.followed_row",
        spark_connect,
        ledger_dsn,
        warehouse_dsn,
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    followed = {phase: [f"`{module}`" for module in modules] for phase, modules in json.loads(done.stdout).items()}
    text = PAGE.read_text()
    for phase in ("run_epoch", *PHASES):
        pattern = re.compile(rf"(^## {phase}\n.*?^Modules: )(.*?)(\.$)", re.M | re.S)
        names = ", ".join(followed[phase])
        if os.environ.get("LOCKSTEP_WRITE_DOCS"):
            text = pattern.sub(rf"\g<1>{names}\g<3>", text, count=1)
            PAGE.write_text(text)
        match = pattern.search(text)
        assert match, f"docs/architecture.md has no list of modules below '## {phase}'"
        assert match[2] == names, f"{phase}: LOCKSTEP_WRITE_DOCS=1 writes the list anew"
