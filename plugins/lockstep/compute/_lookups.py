"""Concurrent requests to an outside system, in Spark's Python workers.

The workers get this module and `lockstep.errors` by value. So it imports only these, pyarrow and tenacity.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from tenacity import AsyncRetrying, stop_after_attempt, wait_random_exponential

from lockstep.errors import StageFailed

Key = dict[str, Any]  #: one row's values of the key columns
Answer = Mapping[str, Any] | None  #: values of the new columns; those it lacks are null
_LONGEST_WAIT = 30.0


@dataclass(frozen=True)
class LookupFailure:
    """The reason why a request has no answer."""

    reason: str


@dataclass(frozen=True)
class Lookup:
    """The arguments of `enrich`, and the function for the workers. `answers`: the new columns, without `error`."""

    function: Callable[..., Any] | str
    keys: tuple[str, ...]
    answers: pa.Schema
    client: Callable[[], Any] | None
    batch: int | None
    concurrency: int
    timeout: float
    retries: int
    backoff: float
    ordered: bool
    fails: bool
    error: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Add the answers to the rows of one task; for `mapInArrow`."""
        with ExitStack() as stack:
            loop = stack.enter_context(closing(asyncio.new_event_loop()))
            pool = ThreadPoolExecutor(self.concurrency)
            stack.callback(pool.shutdown, wait=False, cancel_futures=True)
            opened = self._opened(pool)
            ask = loop.run_until_complete(opened.__aenter__())
            stack.callback(lambda: loop.run_until_complete(opened.__aexit__(None, None, None)))
            for batch in batches:
                yield loop.run_until_complete(self._enriched(batch, ask))

    @asynccontextmanager
    async def _opened(self, pool: ThreadPoolExecutor) -> AsyncIterator[Callable[[Any], Any]]:
        """Open the client; yields the function to await. A plain function runs in the pool's threads."""
        function: Any = self.function
        if isinstance(function, str):
            module, _, name = function.partition(":")
            function = getattr(importlib.import_module(module), name)
        waits = inspect.iscoroutinefunction(function)

        def ask(client: tuple[Any, ...], question: Any) -> Any:
            called = partial(function, *client, question)
            return called() if waits else asyncio.get_running_loop().run_in_executor(pool, called)

        if self.client is None:
            yield partial(ask, ())
            return
        manager = self.client()
        if hasattr(manager, "__aenter__"):
            async with manager as client:
                yield partial(ask, (client,))
        else:
            with manager as client:
                yield partial(ask, (client,))

    async def _enriched(self, batch: pa.RecordBatch, ask: Callable[[Any], Any]) -> pa.RecordBatch:
        keys: list[Key] = batch.select(list(self.keys)).to_pylist()
        rows: dict[str, list[int]] = {}  # equal keys are sent once
        for row, key in enumerate(keys):
            rows.setdefault(repr(tuple(key.values())), []).append(row)
        same = list(rows.values())
        answers = await self._answered([keys[group[0]] for group in same], ask)
        pairs = [(row, answer) for number, answer in answers.items() for row in same[number]]
        if self.ordered:
            pairs.sort(key=lambda pair: pair[0])
        else:
            batch = batch.take(pa.array([row for row, _ in pairs], pa.int64()))
        return self._join(batch, [answer for _, answer in pairs])

    async def _answered(self, keys: list[Key], ask: Callable[[Any], Any]) -> dict[int, Answer | LookupFailure]:
        """Answers by the number of their key, in the order of arrival."""
        answers: dict[int, Answer | LookupFailure] = {}
        free = asyncio.Semaphore(self.concurrency)

        async def answer_group(start: int) -> None:
            group = keys[start : start + (self.batch or 1)]
            async with free:
                group_answers = await self._persistent(ask, group)
            answers.update(zip(range(start, start + len(group)), group_answers, strict=True))

        try:
            async with asyncio.TaskGroup() as tasks:
                for start in range(0, len(keys), self.batch or 1):
                    tasks.create_task(answer_group(start))
        except BaseExceptionGroup as group:
            first = group.exceptions[0]
            raise first from first.__cause__  # the other tasks were cancelled, or failed alike
        return answers

    async def _persistent(self, ask: Callable[[Any], Any], group: list[Key]) -> list[Answer | LookupFailure]:
        tries = AsyncRetrying(
            stop=stop_after_attempt(self.retries + 1),
            wait=wait_random_exponential(multiplier=self.backoff, max=_LONGEST_WAIT),
            reraise=True,
        )
        try:
            return await tries(self._once, ask, group)
        except Exception as error:
            tried = f"no answer after {self.retries + 1} tries"
            if self.fails:
                raise StageFailed(f"enrich by {self.name}: {tried}: {self._name_kind(error)}") from error
            return [LookupFailure(f"{tried}: {self._describe(error)}")] * len(group)

    async def _once(self, ask: Callable[[Any], Any], group: list[Key]) -> list[Answer | LookupFailure]:
        question = group[0] if self.batch is None else group
        answer = await asyncio.wait_for(ask(question), self.timeout)
        answers = [answer] if self.batch is None else list(answer)
        if len(answers) != len(group):
            raise StageFailed(f"{len(group)} keys were sent, {len(answers)} answers received")
        for values in answers:
            if values is not None and (unknown := set(values) - set(self.answers.names)):
                raise StageFailed(f"an answer has {sorted(unknown)}, which the schema doesn't have")
        return answers

    def _join(self, batch: pa.RecordBatch, answers: list[Answer | LookupFailure]) -> pa.RecordBatch:
        values = [answer if isinstance(answer, Mapping) else {} for answer in answers]
        columns = [pa.array([answer.get(column.name) for answer in values], column.type) for column in self.answers]
        names = list(self.answers.names)
        if self.error is not None:
            reasons = [answer.reason if isinstance(answer, LookupFailure) else None for answer in answers]
            columns.append(pa.array(reasons, pa.string()))
            names.append(self.error)
        return pa.RecordBatch.from_arrays([*batch.columns, *columns], [*batch.schema.names, *names])

    def _describe(self, error: Exception) -> str:
        """The error for the column `error`, which is data and may quote values."""
        if isinstance(error, TimeoutError | StageFailed):
            return self._name_kind(error)
        return f"{type(error).__name__}: {error}"

    def _name_kind(self, error: Exception) -> str:
        """The error for a message, without its text: an HTTP client's text has the URL, which often has the key."""
        if isinstance(error, TimeoutError):
            return f"no answer within {self.timeout} s"
        if isinstance(error, StageFailed):
            return str(error)
        status = getattr(getattr(error, "response", None), "status_code", None)
        return f"{type(error).__name__} {status}" if isinstance(status, int) else type(error).__name__

    @property
    def name(self) -> str:
        return self.function if isinstance(self.function, str) else getattr(self.function, "__qualname__", "a function")
