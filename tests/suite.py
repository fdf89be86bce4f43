"""How pytest runs the suite: the tests of a tier, shared out among processes, and sweeps sampled by a seed or whole."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import core
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from stack import postgres
from tests.sampling import Sampling, seed_of
from tests.seconds import CACHE
from tests.tiers import TESTS, Share, Tier, files, part_of, tier_of

SAMPLE = "sample"  #: a property of a test's report: how many cases of its sweep it ran


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite")
    group.addoption(
        "--tier",
        choices=[tier.value for tier in Tier],
        help="the last tier to run (check; all, if files or folders are named)",
    )
    group.addoption("--seed", type=int, help="sample sweeps by this seed (the number of the commit)")
    group.addoption("--whole", action="store_true", help="run sweeps whole")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sample(size): a sweep by parameters; a run takes only so many of them")
    config.addinivalue_line("markers", "fault(*rows): shows these rows of docs/faults.md")
    config.addinivalue_line("markers", "tier(name): the first tier that runs the test, if it is not its file's")
    options = config.option
    if workerinput := getattr(config, "workerinput", None):  # of the process that shares the tests out
        options.tier, options.seed = workerinput["tier"], workerinput["seed"]
        number, count = int(workerinput["workerid"].removeprefix("gw")), workerinput["workercount"]
        postgres.FREE_PORTS = postgres.FREE_PORTS[number::count]  # no two processes draw the same
    else:
        if options.tier is None:
            named = config.args_source is pytest.Config.ArgsSource.ARGS
            options.tier = (Tier.ALL if named else Tier.CHECK).value
        if options.seed is None:
            options.seed = seed_of(TESTS.parent)
        config.pluginmanager.register(EarlyFailures(config))
        config.pluginmanager.register(Seconds())
    core.global_force_seed = options.seed  # Hypothesis draws the same examples, too


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    node.workerinput |= {"tier": node.config.option.tier, "seed": node.config.option.seed}


def _tier(config: pytest.Config) -> Tier:
    return Tier(config.option.tier)


def _seed(config: pytest.Config) -> int | None:
    seed: int = config.option.seed
    return None if config.option.whole else seed


def pytest_report_header(config: pytest.Config) -> list[str]:
    tier, seed = _tier(config), _seed(config)
    sweeps = "whole" if seed is None else f"sampled by seed {seed}; --seed {seed} repeats them"
    return [f"tier {tier}: {len(files(tier))} of {len(files(Tier.ALL))} files, see tests/tiers.py; sweeps: {sweeps}"]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of a later tier aren't imported."""
    if collection_path.is_relative_to(TESTS) and (collection_path.is_dir() or collection_path.match("test_*.py")):
        path = PurePosixPath(collection_path.relative_to(TESTS))
        if not any(file.is_relative_to(path) for file in files(_tier(config))):
            return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: part_of(_path(item)).rank)
    left_out = {item for item in items if not _tier(config).holds(tier_of(_path(item), _own_tier(item)))}
    swept: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item not in left_out and (marker := item.get_closest_marker("sample")):
            swept[item.nodeid.partition("[")[0], marker.args[0]].append(item)
    for (_, size), cases in swept.items():
        sampling = Sampling(_seed(config))
        run = sampling.sample(cases, size)
        run[0].user_properties.append((SAMPLE, [sampling.run, sampling.swept]))
        left_out |= set(cases) - set(run)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _own_tier(item: pytest.Item) -> Tier | None:
    marker = item.get_closest_marker("tier")
    return Tier(marker.args[0]) if marker else None


def _path(item: pytest.Item) -> PurePosixPath:
    return PurePosixPath(item.path.relative_to(TESTS))


def pytest_collection_finish() -> None:
    """What is there by now stays to the end: nothing looks through it for garbage, and a forked child copies no page of
    it for that."""
    gc.collect()
    gc.freeze()


os.register_at_fork(after_in_child=gc.disable)


@pytest.fixture
def sampling(request: pytest.FixtureRequest) -> Iterator[Sampling]:
    """For a test that sweeps: takes this run's share of the cases."""
    sampling = Sampling(_seed(request.config))
    yield sampling
    if sampling.swept:
        request.node.user_properties.append((SAMPLE, [sampling.run, sampling.swept]))


@pytest.hookimpl(tryfirst=True)
def pytest_report_to_serializable(report: pytest.CollectReport | pytest.TestReport) -> None:
    """Between processes a subtest's name is text: execnet sends no other kind of str, such as an enum."""
    context = getattr(report, "context", None)
    if context is not None and context.msg is not None:
        report.context = replace(context, msg=str(context.msg))  # type: ignore[union-attr]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how much of each sweep was left to `--whole`."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if getattr(report, "when", None) == "teardown":
            for name, value in report.user_properties:
                if name == SAMPLE:
                    count = counts[report.nodeid.partition("[")[0]]
                    count[:] = [have + more for have, more in zip(count, value, strict=True)]
    sampled = {test: count for test, count in counts.items() if count[0] < count[1]}
    if sampled:
        terminalreporter.section("sampled sweeps")
    for test, (run, swept) in sorted(sampled.items()):
        terminalreporter.line(f"{run} of {swept}: {test}")


class EarlyFailures:
    """Prints a failure in a line when it happens; pytest prints its whole text at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter: pytest.TerminalReporter | None = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message.partition("\n")[0] if crash else ""
            reporter.ensure_newline()
            reporter.write_line(f"{report.when} failed: {report.nodeid} {message}".rstrip(), red=True)


class Seconds:
    """Keeps how long each test took, for `python -m tests.seconds`."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        cache = getattr(session.config, "cache", None)  # none with -p no:cacheprovider
        if cache is not None and self._seconds:
            cache.set(CACHE, {test: round(took, 3) for test, took in self._seconds.items()})


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


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than processors: tests also wait for servers, disks and children."""
    return (os.cpu_count() or 1) + 1
