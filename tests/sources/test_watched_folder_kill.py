"""kill -9 while files land: at every crash point of an epoch more input comes, at a random one the process dies.

At the end every line that was landed stands in the sink once.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Literal

import pytest

from tests.crash.victims import sacrifice
from tests.sources.folder_world import Make, hits_of, tasks_while

DEATHS = 6


def land_a_file(landing: Path) -> None:
    """One more file, with an old or a new time of change."""
    number = len(list(landing.iterdir()))
    pending = landing / f".{number}"
    pending.write_text(f"{number}.1\n{number}.2\n")
    moment = 1_700_000_000_000_000_000 - random.Random(number).randrange(10**15)
    os.utime(pending, ns=(moment, moment))
    pending.rename(landing / f"{number:04}.txt")


def append_some_bytes(landing: Path) -> None:
    """A few bytes more to one of three files, cutting lines anywhere."""
    sizes = [path.stat().st_size if (path := landing / f"{name}.txt").exists() else 0 for name in "abc"]
    total = sum(sizes)
    name = "abc"[total % 3]
    with (landing / f"{name}.txt").open("ab") as file:
        file.write(stream(name, sizes["abc".index(name)], 5 + total % 11))


def stream(name: str, place: int, length: int) -> bytes:
    """Bytes of an endless text: lines of eleven bytes, each different."""
    first = place // 11
    text = "".join(f"{name} line{number:04}\n" for number in range(first, first + 4))
    return text.encode()[place - first * 11 :][:length]


def finish_lines(landing: Path) -> None:
    for path in landing.iterdir():
        data = path.read_bytes()
        if not data.endswith(b"\n"):
            path.write_bytes(data + b"\n")


Land = Callable[[Path], None]
KINDS: dict[str, tuple[Land, dict[str, object], Literal["resume", "merge"]]] = {
    "files": (land_a_file, {"max_files_per_epoch": 15}, "resume"),
    "merged growing files": (append_some_bytes, {"grow": True}, "merge"),
    "growing files": (append_some_bytes, {"grow": True, "max_bytes_per_epoch": 150}, "resume"),
    "merged files": (land_a_file, {}, "merge"),
}


@pytest.mark.fault("A20", "A28")
@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_no_line_is_lost_or_doubled_by_kill_9_while_input_comes(
    make: Make, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    land, arguments, on_stuck = KINDS[kind]
    world = make(**arguments)
    world.pipeline = replace(world.pipeline, on_stuck=on_stuck)
    land(world.landing)
    hits = hits_of(world, monkeypatch)
    dice, killed = random.Random(kind), 0
    for number in range(DEATHS):
        hit, run = dice.choice(hits), f"run {number}"
        tasks = tasks_while(world, partial(land, world.landing), run)
        victim = sacrifice(tasks, hit, "kill", world.folder / "log")
        assert victim.killed or victim.status == 0, victim.log.read_text()
        killed += victim.killed
        if victim.killed and dice.random() < 0.5:
            world.run(run, hit.task)  # Airflow tries the task again
        world.leave()
        world.recover()
    finish_lines(world.landing)
    for number in count():
        world.run(f"last {number}")
        if not world.epochs()[-1].plan.sources["landing"].end["files"]:
            break
    landed = Counter(line for path in world.landing.iterdir() for line in path.read_text().splitlines())
    assert len(landed) > 60
    assert killed > DEATHS / 2
    assert world.shown() == landed
