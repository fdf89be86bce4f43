"""`lockstep`: shows epochs and repairs stuck ones.

The ledger, staging and each sink's connection come from options or from the environment: LOCKSTEP_LEDGER,
LOCKSTEP_STAGING, and LOCKSTEP_<ID> for the connection of that id (LOCKSTEP_CONNECTION_<ID> if the short name is
taken, such as LOCKSTEP_STAGING; passwords through PGPASSFILE). `lockstep env` prints them for the running stack.

Exit codes: 0 done, 1 an error that needs a person, or `status` found something stuck, 2 wrong usage, 3 rows differ,
75 try again later.
"""

from __future__ import annotations

import errno
import importlib
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from traceback import TracebackException, extract_tb
from typing import Annotated, Any

import typer

from lockstep.cli._tables import (
    visible,
)
from lockstep.connections.environment import EnvironmentConnections
from lockstep.distribution import __version__
from lockstep.errors import InvalidPipeline, LockstepError, Retryable
from lockstep.features.assembly import runtime_for
from lockstep.ledger import Ledger
from lockstep.ledger.report import to_json
from lockstep.observability import log_context
from lockstep.pipeline import Pipeline
from lockstep.protocol.runtime import Runtime
from lockstep.wal.staging import Staging

_log = logging.getLogger(__name__)

app = typer.Typer(name="lockstep", help=__doc__, no_args_is_help=True, pretty_exceptions_enable=False)


TERMINAL_EXIT = STUCK_EXIT = 1
DISAGREES_EXIT, RETRYABLE_EXIT = 3, 75  # 75: EX_TEMPFAIL of sysexits.h
MAX_COUNT = 1_000_000_000  #: for options that count

LedgerOption = Annotated[str, typer.Option("--ledger", envvar="LOCKSTEP_LEDGER", help="DSN of the ledger.")]
StagingOption = Annotated[str, typer.Option("--staging", envvar="LOCKSTEP_STAGING", help="URI of staging storage.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def require_line(reason: str | None) -> str | None:
    """Return a reason that fits into the history. Raises `typer.BadParameter`."""
    if reason is not None and (not reason.strip() or not reason.isprintable() or len(reason) > 1000):
        raise typer.BadParameter("it has to be one line of printable text of at most 1,000 characters")
    return reason


ReasonOption = Annotated[str, typer.Option("--reason", callback=require_line, help="Why; stored in the history.")]
PipelineArgument = Annotated[str, typer.Argument(help="Name of the pipeline.")]
DefinitionOption = Annotated[
    str | None, typer.Option(help="Where the pipeline is defined, module:name; default: spark_apps.<pipeline>.")
]
EpochArgument = Annotated[int, typer.Argument(help="Number of the epoch; see `lockstep status`.")]


def print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"lockstep {__version__}")
        raise typer.Exit


class LogFormat(StrEnum):
    """Format of log lines."""

    TEXT = "text"
    JSON = "json"


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option(envvar=log_context.FORMAT, help="json: log lines and errors as JSON on stderr, with fields."),
    ] = LogFormat.TEXT,
) -> None:
    if log_format is LogFormat.JSON:
        log_context.log_json()
    if not sys.stdout:  # closed: the next file that is opened would become file 1 and receive the output
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


@contextmanager
def runtime_of(name: str, ledger: str, staging: str, definition: Pipeline | None = None) -> Iterator[Runtime]:
    with closing(Ledger(ledger)) as opened:
        yield runtime_for(name, opened, Staging(staging), EnvironmentConnections(), definition)


def load_definition(pipeline: str, definition: str | None) -> Pipeline:
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does: definitions are in the checkout, not in site-packages
    reference = definition or f"spark_apps.{pipeline}:pipeline"
    module, _, name = reference.partition(":")
    try:
        pipeline_object = getattr(importlib.import_module(module), name or "pipeline")
        if isinstance(pipeline_object, Pipeline) and pipeline_object.name == pipeline:
            return pipeline_object
    except (LockstepError, KeyboardInterrupt):
        raise
    except BaseException as error:  # importing a module can raise anything
        frames = [at for at in extract_tb(error.__traceback__)[1:] if not re.search("^<|/lib/python", at.filename)]
        place = "".join(f" in {at.filename}, line {at.lineno}" for at in frames[-1:])
        text = " ".join(str(TracebackException.from_exception(error)).split())  # works even if `str(error)` raises
        what = f"{type(error).__name__}: {text}{place}"
        raise InvalidPipeline(f"{reference} can't be imported: {what}; give --definition module:name") from error
    raise InvalidPipeline(f"{reference} is not pipeline {pipeline!r}")


def print_result(as_json: bool, value: Any, show: Any) -> None:
    if as_json:
        typer.echo(json.dumps(to_json(value), default=str))
    else:
        show(value)


@contextmanager
def reported(as_json: bool) -> Iterator[None]:
    """Print an expected error in one line on stderr, and exit with a code that says whether to try again."""
    try:
        yield
        sys.stdout.flush()
    except LockstepError as error:
        kind = type(error).__name__
        if as_json:
            typer.echo(json.dumps({"error": kind, "message": str(error)}), err=True)
        elif log_context.logs_json():
            _log.error("%s: %s", kind, error)
        else:
            typer.echo(visible(f"{kind}: {error}"), err=True)
        raise typer.Exit(RETRYABLE_EXIT if isinstance(error, Retryable) else TERMINAL_EXIT) from error
    except UnicodeEncodeError as error:  # Python turns an argument's invalid bytes into surrogates
        typer.echo(f"an argument or the output has text that isn't {error.encoding}: set PYTHONUTF8=1", err=True)
        raise typer.Exit(TERMINAL_EXIT) from error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        with suppress(OSError, ValueError):  # or the interpreter would flush again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        typer.echo(f"the output can't be written to stdout: {error.strerror}", err=True)
        raise typer.Exit(TERMINAL_EXIT) from error
