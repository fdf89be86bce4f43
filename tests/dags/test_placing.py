"""Where in a DAG file `epoch_dag` may stand: whatever is written there is found by Airflow, or refused by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lockstep
from lockstep.errors import InvalidPipeline
from tests.cases import cases
from tests.dags.airflow_parts import dag_bag
from tests.dags.pipelines import ORDERS

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

    Parse = Callable[[str], DagBag]

HEAD = """
'''An airflow dag file.'''
from airflow.sdk import DAG
from lockstep import epoch_dag
from lockstep.orchestration.recovery import recovery_dag
from tests.dags.airflow_parts import dag_bag
from tests.dags.pipelines import ORDERS
"""


@pytest.fixture
def parse(tmp_path: Path) -> Parse:
    """What the DAG processor makes of a file that ends in these lines."""

    def parsed(lines: str) -> DagBag:
        (tmp_path / "file.py").write_text(f"{HEAD}{lines}{os.linesep}")
        return dag_bag(tmp_path)

    return parsed


@pytest.mark.fault("H23")
@cases(
    "lines",
    [
        "epoch_dag(ORDERS)",
        "def make():\n    epoch_dag(ORDERS)\nmake()",
        "for name in ('orders', 'again'):\n    epoch_dag(ORDERS, dag_id=name)",
        "made = [epoch_dag(ORDERS)]",
    ],
)
def test_a_dag_is_found_whether_its_result_has_a_name_or_not(parse: Parse, lines: str) -> None:
    bag = parse(lines)
    assert not bag.import_errors
    assert "orders" in bag.dags and set(bag.dags) <= {"orders", "again"}


def test_a_dag_that_asks_not_to_be_registered_needs_a_name(parse: Parse) -> None:
    assert not parse("epoch_dag(ORDERS, auto_register=False)").dags
    assert set(parse("made = epoch_dag(ORDERS, auto_register=False)").dags) == {"orders"}


@pytest.mark.fault("H23")
def test_within_another_dag_it_is_refused_by_name_instead_of_adding_nothing(parse: Parse) -> None:
    bag = parse("with DAG('mine'):\n    epoch_dag(ORDERS)")
    [error] = bag.import_errors.values()
    assert "InvalidPipeline" in error and "inside DAG mine" in error and "dag_id='mine'" in error
    assert not bag.dags


@pytest.mark.fault("H23")
def test_within_a_decorated_function_or_a_task_group_it_is_refused_too() -> None:
    from airflow.sdk import DAG, TaskGroup, dag

    @dag(dag_id="mine")
    def mine() -> None:
        lockstep.epoch_dag(ORDERS)

    with pytest.raises(InvalidPipeline, match="inside DAG mine"):
        mine()
    with DAG("other"), TaskGroup("group"), pytest.raises(InvalidPipeline, match="inside DAG other"):
        lockstep.epoch_dag(ORDERS)


def test_the_recovery_dag_is_refused_there_as_well() -> None:
    from airflow.sdk import DAG

    with DAG("mine"), pytest.raises(InvalidPipeline, match=r"recovery_dag stands inside DAG mine"):
        lockstep.recovery_dag()


def test_after_a_refusal_airflow_makes_dags_as_before() -> None:
    from airflow.sdk import DAG

    with DAG("mine"), pytest.raises(InvalidPipeline):
        lockstep.epoch_dag(ORDERS)
    assert lockstep.epoch_dag(ORDERS).task_ids
