"""How pytest runs the suite: the tests of a tier, shared out among processes, and sweeps whole or as a seeded cover."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.cover import Cover
from tests.tiers import TESTS, Share, Tier, begins, files, order, part_of, tier_of

SEEDS = 1000
SEED = "cover seed"
BEGAN = "began"  #: when the run did, by the clock
COVER = "cover"  #: a property of a test's report: how much of its sweep it ran
LATER = "later"  #: of a process's output: tests by name that a later tier runs, of files that this one does
_LATER = pytest.StashKey[list[str]]()
_BEGAN = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite")
    group.addoption(
        "--tier", type=Tier, choices=list(Tier), default=Tier.ALL, help="what to run of the given paths (all)"
    )
    group.addoption(
        "--cover-seed", type=int, help="sweep by the cover of this seed: the whole sweeps run without it in tier all"
    )
    group.addoption(
        "--minutes",
        type=float,
        help="after so many, no test begins that only the tier all has; they run last, in an order of the seed's; "
        "after half as many again none of the tier test",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cover(size): in a cover, only so many of the test's parameters run")
    told: dict[str, Any] = getattr(config, "workerinput", {})  # to each of those that share the tests out
    if SEED in told:
        config.option.cover_seed = told[SEED]
    elif config.option.tier is not Tier.ALL and config.option.cover_seed is None:
        config.option.cover_seed = random.randrange(SEEDS)
    config.stash[_BEGAN] = told.get(BEGAN) or time.time()
    if not told:
        config.pluginmanager.register(FailuresAsTheyCome(config))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    node.workerinput[SEED] = node.config.option.cover_seed
    node.workerinput[BEGAN] = node.config.stash[_BEGAN]


def pytest_report_header(config: pytest.Config) -> list[str]:
    tier, seed = config.option.tier, config.option.cover_seed
    sweeps = "whole" if seed is None else f"as the cover of seed {seed}, which --cover-seed {seed} repeats"
    run = f"{len(files(tier))} of {len(files(Tier.ALL))} files, see tests/tiers.py"
    return [f"tier {tier}: {run}", f"sweeps: {sweeps}"]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What isn't of the tier isn't even imported."""
    if collection_path.is_relative_to(TESTS) and (collection_path.is_dir() or collection_path.match("test_*.py")):
        path = PurePosixPath(collection_path.relative_to(TESTS))
        if not any(file.is_relative_to(path) for file in files(config.option.tier)):
            return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items[:] = order(items, _path, config.option.cover_seed, config.option.minutes is not None)
    left_out = {item for item in items if not config.option.tier.holds(tier_of(_path(item), item.name))}
    config.stash[_LATER] = sorted(item.nodeid for item in left_out)
    swept: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item not in left_out and (marker := item.get_closest_marker("cover")):
            swept[item.nodeid.partition("[")[0], marker.args[0]].append(item)
    for (_, size), cases in swept.items():
        cover = Cover(config.option.cover_seed)
        run = cover.sample(cases, size)
        run[0].user_properties.append((COVER, [cover.run, cover.swept]))
        left_out |= set(cases) - set(run)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.option.minutes
    if minutes is not None:
        passed, tier = (time.time() - item.config.stash[_BEGAN]) / 60, tier_of(_path(item), item.name)
        if not begins(tier, passed, minutes):
            pytest.skip(f"{passed:.0f} minutes are up; `make test-all` without MINUTES runs every test")


def _path(item: pytest.Item) -> PurePosixPath:
    return PurePosixPath(item.path.relative_to(TESTS))


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, list[str]] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[LATER] = session.config.stash.get(_LATER, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """All processes have collected the same."""
    node.config.stash[_LATER] = getattr(node, "workeroutput", {}).get(LATER, [])


@pytest.fixture
def cover(request: pytest.FixtureRequest) -> Iterator[Cover]:
    """For a test that sweeps: its share of what is swept."""
    found = Cover(request.config.option.cover_seed)
    yield found
    if found.swept:
        request.node.user_properties.append((COVER, [found.run, found.swept]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if getattr(report, "when", None) == "teardown":
            for name, value in report.user_properties:
                if name == COVER:
                    count = counts[report.nodeid.partition("[")[0]]
                    count[:] = [have + more for have, more in zip(count, value, strict=True)]
    partly = {test: count for test, count in counts.items() if count[0] < count[1]}
    later = terminalreporter.config.stash.get(_LATER, [])
    if partly or later:
        terminalreporter.section("left to a later tier")
    for test, (run, swept) in sorted(partly.items()):
        terminalreporter.line(f"{swept - run} of {swept}: {test}")
    for test, number in sorted(Counter(test.partition("[")[0] for test in later).items()):
        terminalreporter.line(f"{number} of {number}: {test}")


class FailuresAsTheyCome:
    """Tells a failure when it happens, by a line: its whole text comes at the end, which may be an hour away."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter: pytest.TerminalReporter | None = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            said = crash.message.partition("\n")[0] if crash else ""
            reporter.ensure_newline()
            reporter.write_line(f"{report.when} failed: {report.nodeid} {said}".rstrip(), red=True)


class ByServers(LoadScopeScheduling):
    """Shares the tests out as `tests/tiers.py` says."""

    def _split_scope(self, nodeid: str) -> str:
        file = PurePosixPath(nodeid.partition("::")[0])
        match part_of(file.relative_to(TESTS.name)).share:
            case Share.FILE:
                return str(file)
            case Share.FOLDER:
                return str(file.parent)
            case Share.PARAMETER:
                return nodeid.partition("-")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServers:
    return ByServers(config, log)
