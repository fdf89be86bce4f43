"""With state all epochs from one on are replaced by one: sinks and the newest state are of the same rows, always."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from lockstep import crash
from lockstep.crash import CrashPoint
from lockstep.epoch import Epoch, RunKey
from lockstep.errors import EpochBusy, OutOfOrder, RestateRefused, SourceRefused
from lockstep.ledger import Ledger
from lockstep.operations.as_of import as_of
from lockstep.operations.renumber import renumber
from lockstep.operations.replan import replan, void
from lockstep.operations.verify import verify
from stack.postgres import PostgresServer
from tests.crash.originals import Originals, copied
from tests.crash.state_world import OpenCounted, StateWorld, Totals, add_doubled, totals_after
from tests.crash.victims import Action, Hit, hits_of, in_turn, overtake, sacrifice
from tests.sampling import Sampling

_runs = count(1)
FIRST_WRONG = 2


class RestatedState:
    """Epochs of sums; some have counted each number twice."""

    def __init__(self, world: StateWorld) -> None:
        self.world = dataclasses.replace(world, pipeline=dataclasses.replace(world.pipeline, keep_state=4))
        self.ledger = Ledger(world.ledger_dsn)

    def go_on(self, *, wrong: bool = False) -> int:
        """The next epoch, all the way: its number."""
        run = RunKey("adding", f"run {next(_runs)}")
        for task in self.world.tasks():
            if wrong and task == "stage":
                self.world.run_task(task, run, add_doubled)
            else:
                self.world.run_task(task, run)
        return self.epoch_of(run).id

    def epoch_of(self, run: RunKey) -> Epoch:
        attempt = self.ledger.find_run(run)
        assert attempt is not None
        return self.ledger.epoch("adding", attempt.epoch)

    def wrong_from(self, number: int = 3) -> int:
        """So many epochs that are wrong, behind one that is right: the first one's number."""
        self.go_on()
        return min([self.go_on(wrong=True) for _ in range(number)])

    def asking(self, first: int, why: str = "each number was counted twice") -> RunKey:
        return RunKey("adding", f"restating {next(_runs)}", restate=why, epoch=first)

    def restate(self, run: RunKey, start: str = "begin") -> None:
        self.world.run(run, start)

    @property
    def standing(self) -> list[Epoch]:
        return self.ledger.sequence_from(self.ledger.epoch("adding", 1)) if self.world.last() else []

    def require_true(self) -> None:
        """State and sink have each number once, up to where the cursor ended."""
        newest = self.standing[-1]
        end = newest.plan.sources["numbers"].end
        assert self.world.state_of(newest) == totals_after(end)
        self.require_agreement()
        last: Totals = {}
        for number in sorted(shown := self.world.shown()):
            last |= shown[number]
        assert last == totals_after(end)

    def require_agreement(self) -> None:
        """The sink shows those that stand, and nothing that was replaced; each goes on where the one before ended."""
        standing = self.standing
        assert set(self.world.shown()) == {one.id for one in standing}
        ends = [0, *(one.plan.sources["numbers"].end for one in standing)]
        assert [one.plan.sources["numbers"].start or 0 for one in standing] == ends[:-1]


@pytest.fixture(scope="module")
def originals(ledger_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Originals[StateWorld]:
    def make(name: str) -> StateWorld:
        dsn = ledger_server.create_database(f"restated_state_{next(_runs)}")
        made = StateWorld.make(dsn, tmp_path_factory.mktemp("restated_state"))
        if name == "wronged":
            assert RestatedState(made).wrong_from(2) == FIRST_WRONG
        return made

    return Originals(ledger_server, make)


@pytest.fixture
def states(originals: Originals[StateWorld]) -> Iterator[RestatedState]:
    made = RestatedState(originals.copy("empty"))
    yield made
    made.ledger.close()


@pytest.fixture
def wronged(originals: Originals[StateWorld]) -> Iterator[RestatedState]:
    """Epoch 1 is right, 2 and 3 aren't."""
    made = RestatedState(originals.copy("wronged"))
    yield made
    made.ledger.close()


def test_all_from_an_epoch_on_are_replaced_by_one_decision(wronged: RestatedState) -> None:
    first = FIRST_WRONG
    wronged.go_on(wrong=True)
    run = wronged.asking(first)
    wronged.restate(run)
    new = wronged.epoch_of(run)
    assert new.generation is not None
    assert (new.root, new.generation.replaces, new.generation.through) == (first, first, new.id - 1)
    assert [one.id for one in wronged.ledger.replaced(new)] == [first, first + 1, first + 2]
    assert {wronged.ledger.epoch("adding", one).state for one in range(first, new.id)} == {"replaced"}
    wronged.require_true()
    assert wronged.go_on() == new.id + 1
    wronged.require_true()
    wronged.restate(run)
    assert wronged.ledger.successor(new) is None, "a run restates once"
    runtime = wronged.world.runtime()
    for number in range(1, new.id + 2):
        assert all(one.agrees for one in verify(runtime, wronged.ledger.epoch("adding", number))), number
    assert set(as_of("adding", ledger=wronged.world.ledger_dsn, connections={}).sinks["files"]) == {"totals"}


def renumbered(state: RestatedState, copy: str) -> RestatedState:
    """The same pipeline by a restored ledger, renumbered."""
    restored = RestatedState(dataclasses.replace(state.world, ledger_dsn=copy))
    renumber(restored.world.runtime(), "the ledger was restored")
    return restored


@pytest.mark.fault("P5")
def test_what_a_lost_ledger_has_restated_is_restated_from_the_same_epoch(
    wronged: RestatedState, ledger_server: PostgresServer
) -> None:
    copy = copied(ledger_server, wronged.world.ledger_dsn)
    wronged.restate(wronged.asking(FIRST_WRONG))
    restored = renumbered(wronged, copy)
    with pytest.raises(RestateRefused, match=rf"shows epoch 4 in the place of all from epoch {FIRST_WRONG} on"):
        restored.restate(restored.asking(FIRST_WRONG + 1))
    restored.restate(restored.asking(FIRST_WRONG))
    restored.require_true()
    restored.restate(restored.asking(restored.go_on(wrong=True)))
    restored.restate(restored.asking(FIRST_WRONG, "once more"))
    restored.require_true()
    restored.ledger.close()


@pytest.mark.fault("P11", "P13")
def test_state_of_a_lost_ledger_is_left_alone_by_cleanup(wronged: RestatedState, ledger_server: PostgresServer) -> None:
    copy = copied(ledger_server, wronged.world.ledger_dsn)
    wronged.restate(wronged.asking(FIRST_WRONG))
    restored, states = renumbered(wronged, copy), wronged.world.runtime().states()
    assert as_of("adding", ledger=copy, connections={}).epochs.without == (2, 3)
    restored.restate(restored.asking(FIRST_WRONG))
    restored.world = dataclasses.replace(
        restored.world, pipeline=dataclasses.replace(restored.world.pipeline, keep_state=1)
    )
    restored.go_on()
    assert [one.epoch for one in states.executions()] == [4, 5, 6], "1 to 3 are let go of, 4 is a person's to delete"
    restored.require_true()
    restored.ledger.close()


@pytest.mark.fault("P7")
def test_what_lost_ledgers_have_restated_from_two_epochs_is_restated_from_the_earlier(
    wronged: RestatedState, ledger_server: PostgresServer
) -> None:
    """A backup is restored, and later once more: it doesn't know how the first loss was healed either."""
    copies = [copied(ledger_server, wronged.world.ledger_dsn) for _ in range(2)]
    wronged.restate(wronged.asking(FIRST_WRONG + 1))
    wronged.restate(wronged.asking(FIRST_WRONG))
    for copy in copies:
        restored = renumbered(wronged, copy)
        with pytest.raises(RestateRefused, match=rf"in the place of all from epoch {FIRST_WRONG} on"):
            restored.restate(restored.asking(FIRST_WRONG + 1))
        restored.restate(restored.asking(FIRST_WRONG))
        restored.require_true()
        restored.restate(restored.asking(FIRST_WRONG, "once more"))
        restored.require_true()
        restored.ledger.close()


def test_what_was_restated_is_restated_again_from_an_earlier_epoch(states: RestatedState) -> None:
    states.go_on()
    first = states.wrong_from(2)
    states.restate(states.asking(first + 1))
    states.restate(states.asking(first))
    states.require_true()
    last = states.standing[-1]
    states.restate(states.asking(first + 1, "once more"))  # it is the same epoch's by now
    again = states.standing[-1]
    assert again.generation is not None and again.generation.replaces == last.id and again.root == first
    states.require_true()
    states.go_on()
    states.require_true()


def test_a_request_that_has_restated_a_part_is_no_request_for_all_of_it(states: RestatedState) -> None:
    states.go_on()
    first, why = states.wrong_from(2), "each number was counted twice (request 2026-11)"
    states.restate(states.asking(first + 1, why))
    done = states.standing[-1]
    states.restate(states.asking(first + 1, why))
    assert states.standing[-1] == done, "it is done"
    with pytest.raises(
        RestateRefused, match=f"request '2026-11' has been done for a part of this: adding epoch {done.id} "
    ):
        states.restate(states.asking(first, why))
    states.restate(states.asking(first, why.replace("11", "12")))
    states.restate(states.asking(first + 1, why.replace("11", "12")))  # with the one before it
    assert [one.id for one in states.standing][-1] == done.id + 1
    states.require_true()


def test_the_next_epoch_waits_for_the_state_and_none_is_read_twice(wronged: RestatedState) -> None:
    first = FIRST_WRONG
    run, following = wronged.asking(first), RunKey("adding", f"following {next(_runs)}")
    for task in ("begin", "stage"):
        wronged.world.run_task(task, run)
    wronged.world.run_task("begin", following)
    with pytest.raises(OutOfOrder):
        wronged.world.run_task("stage", following)
    wronged.restate(run, "prepare")
    wronged.restate(following, "stage")
    wronged.require_true()


def test_one_that_is_given_up_leaves_everything_as_it_was(wronged: RestatedState) -> None:
    first = FIRST_WRONG
    before = wronged.world.shown()
    run = wronged.asking(first)
    for task in ("begin", "stage", "prepare"):
        wronged.world.run_task(task, run)
    assert replan(wronged.world.runtime(), wronged.epoch_of(run).id, "anew").plan == wronged.epoch_of(run).plan
    void(wronged.world.runtime(), wronged.epoch_of(run).id, "a mistake")
    assert wronged.world.shown() == before
    wronged.go_on()
    wronged.require_agreement()
    wronged.restate(wronged.asking(first))
    wronged.require_true()


@pytest.mark.fault("P25")
def test_while_a_later_epoch_is_undecided_it_is_refused(states: RestatedState) -> None:
    first = states.wrong_from(1)
    run = RunKey("adding", f"later {next(_runs)}")
    states.world.run_task("begin", run)
    last = states.world.last()
    with pytest.raises(
        EpochBusy, match=r"epoch .* is planned; wait for its run, or give it up with .lockstep void adding"
    ):
        states.world.run_task("begin", states.asking(first))
    assert states.world.last() == last
    states.restate(run, "stage")
    states.restate(states.asking(first))
    states.require_true()


def test_a_state_that_is_no_longer_kept_is_named(states: RestatedState) -> None:
    first = states.go_on()
    for _ in range(6):
        states.go_on()
    before = states.world.last()
    with pytest.raises(RestateRefused, match=f"from the state of epoch {first}, which is no longer kept"):
        states.world.run_task("begin", states.asking(first + 1))
    states.restate(states.asking(1, "from the first on"))  # it starts from nothing
    assert before is not None and states.standing[-1].generation is not None
    states.require_true()


def test_ranges_that_can_not_be_read_as_one_are_refused(
    wronged: RestatedState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apart(*_: object) -> None:
        raise SourceRefused("they lie apart")

    first = FIRST_WRONG
    monkeypatch.setattr(OpenCounted, "join", apart)
    with pytest.raises(RestateRefused, match=f"all up to epoch {first + 1} from what was read: they lie apart"):
        wronged.world.run_task("begin", wronged.asking(first))
    wronged.restate(wronged.asking(first + 1))  # the last one's range is a single one


# --- crashes and zombies ---------------------------------------------------------------------------------------------


def _hits(states: RestatedState, monkeypatch: pytest.MonkeyPatch) -> list[Hit]:
    monkeypatch.setenv("LOCKSTEP_TESTING", "1")
    run, found = states.asking(states.wrong_from(2)), list[Hit]()
    old = states.world.shown()
    for task in states.world.tasks():
        reached: Counter[CrashPoint] = Counter()

        def look(point: CrashPoint, reached: Counter[CrashPoint] = reached) -> None:
            reached[point] += 1
            assert states.world.shown() == old or not old.keys() & set(range(run.epoch or 0, max(old) + 1)) & set(
                states.world.shown()
            ), "a reader sees all of the old ones, or none"

        stop = crash.observe(look)
        try:
            states.world.run_task(task, run)
        finally:
            stop()
        found += hits_of(task, reached)
    monkeypatch.delenv("LOCKSTEP_TESTING")
    states.require_true()
    assert len(found) > 40
    return found


def _retry(states: RestatedState, run: RunKey, task: str) -> None:
    states.restate(run, task)


def _new_run(states: RestatedState, run: RunKey, task: str) -> None:
    states.world.expire_leases()
    states.restate(dataclasses.replace(run, run_id=f"new {next(_runs)}"))


def _recovery(states: RestatedState, run: RunKey, task: str) -> None:
    states.world.expire_leases()
    assert states.world.recover().problems == []
    attempt = states.ledger.find_run(run)
    if attempt is None or states.epoch_of(run).state != "cleaned":
        states.restate(run)


Resume = Callable[[RestatedState, RunKey, str], None]
WAYS: list[tuple[Action, Resume]] = [
    ("kill", _retry),
    ("kill", _recovery),
    ("hang", _retry),
    ("hang", _new_run),
    ("hang", _recovery),
]


@pytest.mark.tier("all")
def test_state_and_sinks_agree_wherever_a_process(
    states: RestatedState,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    subtests: pytest.Subtests,
    sampling: Sampling,
) -> None:
    """… is killed, or hangs and is released after another one has finished the restatement, and the next epoch."""
    for (action, resume), hit in in_turn(sampling, _hits(states, monkeypatch), WAYS, every=15):
        with subtests.test(f"{action} {hit} {resume.__name__}"):
            run = states.asking(states.wrong_from(2))
            tasks = [(task, partial(states.world.run_task, task, run)) for task in states.world.tasks()]
            victim = sacrifice(tasks, hit, action, tmp_path / "victim.log")
            overtake(victim, partial(resume, states, run, hit.task), states.require_true)
            states.go_on()
            states.require_true()
    states.world.expire_leases()
    assert states.world.recover().problems == []
    assert not list((states.world.folder / "staging").glob("*/*/epoch=*/*"))
