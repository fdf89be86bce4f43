"""A test suite for sinks: run it against your own sink.

    import pytest
    from lockstep.testing import SinkUnderTest, behaviours, judge

    class MySinkUnderTest(SinkUnderTest): ...

    @pytest.mark.parametrize("behaviour", behaviours(MySinkUnderTest), ids=lambda behaviour: behaviour.__name__)
    def test_my_sink(behaviour, tmp_path):
        behaviour(MySinkUnderTest(tmp_path))

    def test_my_sink_keeps_its_guarantee(tmp_path):
        assert judge(MySinkUnderTest(tmp_path)).guarantee == "exactly_once"

`judge` kills the sink between any two of its calls and returns the guarantee that it really keeps. Nothing here needs
pytest.
"""

from lockstep.testing._behaviour import Behaviour, behaviours
from lockstep.testing._judge import JudgeFinding, SinkVerdict, calls_from, calls_of, judge
from lockstep.testing._sealed_rows import OUTPUT, SCHEMA, SealedRows, sealed
from lockstep.testing._under_test import SinkUnderTest

__all__ = [
    "OUTPUT",
    "SCHEMA",
    "Behaviour",
    "JudgeFinding",
    "SealedRows",
    "SinkUnderTest",
    "SinkVerdict",
    "behaviours",
    "calls_from",
    "calls_of",
    "judge",
    "sealed",
]
