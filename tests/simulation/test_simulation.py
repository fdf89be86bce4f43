"""The production roles under every misfortune that a seed can think of: rows exactly once, nothing left over.

LOCKSTEP_SEEDS=500 runs more of them, LOCKSTEP_SEED=17 that one alone; a failure prints its seed and its trace.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.simulation.misfortunes import LEFT_UNSEALED
from tests.simulation.simulating import simulate

if "LOCKSTEP_SEED" in os.environ:
    SEEDS = [int(os.environ["LOCKSTEP_SEED"])]
else:
    SEEDS = list(range(int(os.environ.get("LOCKSTEP_SEEDS", "40"))))


@pytest.mark.fault("D2", "D6", "D10", "D12", "E2", "E5", "E13", "F3", "F5", "G1", "G2", "G3", "G4", "H18", "J8", "L11")
@pytest.mark.sample(6)  # neighbours differ in what kind of world they have
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_a_seed_brings_every_row_is_shown_once(
    seed: int, simulated_ledger: str, memory: Path, standing: None
) -> None:
    simulate(simulated_ledger, memory, seed, packs=seed % 2 == 1)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(24))
def test_whatever_a_seed_brings_readers_see_one_life_of_a_range(
    seed: int, simulated_ledger: str, memory: Path, standing: None
) -> None:
    simulate(simulated_ledger, memory, seed, packs=seed % 2 == 1, restates=True)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(12))
def test_whatever_a_seed_brings_earlier_rows_come_back_whole(
    seed: int, simulated_ledger: str, memory: Path, standing: None
) -> None:
    simulate(simulated_ledger, memory, seed, restates=True, restores=True)


@pytest.mark.fault("A28")
@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(12))
def test_whatever_a_seed_brings_merged_rows_are_shown_once(
    seed: int, simulated_ledger: str, memory: Path, standing: None
) -> None:
    simulate(simulated_ledger, memory, seed, LEFT_UNSEALED, packs=seed % 2 == 1, merges=True)


def test_a_seed_tells_the_same_story_twice(simulated_ledger: str, memory: Path, standing: None) -> None:
    assert simulate(simulated_ledger, memory, 1) == simulate(simulated_ledger, memory, 1)
