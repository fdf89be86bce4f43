"""Commands that error messages suggest, complete with every name, ready to paste."""

from __future__ import annotations

import shlex
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version

from lockstep.epoch import Interval, RunKey

REPLAN, RESOLVE = "`lockstep replan`", "`lockstep resolve … applied`"  #: as those say it who don't know the epoch
NOTEBOOK = "run_epoch"  #: what stands for a DAG's id where there is no Airflow
COMMAND = "lockstep restate"  #: and where a person restates
RESTORE = "lockstep restore"  #: and where one goes back to an earlier generation
COMMANDS = frozenset({COMMAND, RESTORE})  #: whose run is what was asked for: it may be given twice at a time
MANIFEST_DIGITS = 12  #: of a manifest's hash, by which a person names one
OF_NO_DAG = COMMANDS | {NOTEBOOK}


def _has_dags_clear() -> bool:
    """Looks at the installed version, because importing Airflow takes seconds."""
    try:
        return tuple(int(part) for part in version("apache-airflow-core").split(".")[:2]) >= (3, 3)
    except PackageNotFoundError:
        return False


HAS_DAGS_CLEAR = _has_dags_clear()  #: whether there is an Airflow here, whose command line can clear a run


def clear(dag_id: str | None, run_id: str | None) -> str:
    """Has a run begin anew, in a new attempt at its own epoch; what is sealed isn't staged again."""
    if dag_id is None or run_id is None:
        return "trigger its DAG"
    if dag_id == NOTEBOOK:
        return "call `run_epoch` for it again"
    if dag_id in COMMANDS:
        return f"run `{dag_id}` again with the same reason"
    run = RunKey(dag_id, run_id)
    whole = run.whole.run_id  # what moves a pack, or several pipelines, has an id for each
    if run.moves is not None:  # the command would clear the tasks around them, too
        return f"in Airflow clear the tasks of {run.moves} in run {whole} of DAG {dag_id}"
    if not HAS_DAGS_CLEAR:
        return f"in Airflow clear run {whole} of DAG {dag_id}"
    return f"`airflow dags clear {shlex.quote(dag_id)} --run-id {shlex.quote(whole)}`"


def recover(pipeline: str) -> str:
    """Publishes decided epochs and cleans up the rest."""
    return f"`lockstep recover {pipeline}`"


def rebuild(pipeline: str) -> str:
    """Shows what an empty ledger can be filled with after another one was lost."""
    return f"`lockstep rebuild {pipeline} --plan`"


def go_on_without(pipeline: str, *sinks: str) -> str:
    """Takes a person's word that what the targets of sinks have lost stays away."""
    lacking = " ".join(f"--lacking {shlex.quote(sink)}" for sink in sinks)
    return f"`lockstep renumber {pipeline} {lacking} --reason 'it stays away'`"


def void(pipeline: str, epoch: int) -> str:
    """Gives an undecided epoch's range up."""
    return f"`lockstep void {pipeline} {epoch} --reason 'given up'`"


def replan(pipeline: str, epoch: int) -> str:
    """Freezes an undecided epoch anew."""
    return f"`lockstep replan {pipeline} {epoch} --reason 'planned anew'`"


def restate(pipeline: str, epoch: int) -> str:
    """Has a published range read again, and replaced."""
    return f"`lockstep restate {pipeline} --epoch {epoch} --reason 'records came late'`"


def fill(hole: Interval) -> str:
    """Moves intervals without an epoch, even where a run failed, but not the next, which a backfill's end may be of."""
    dates = f"--from-date {hole.start.isoformat()} --to-date {(hole.end - timedelta(seconds=1)).isoformat()}"
    return f"`airflow backfill create --dag-id <its DAG> {dates} --reprocess-behavior failed` fills it"


def verify(pipeline: str, epoch: int) -> str:
    """Reads an epoch back from its sinks and compares it with what was sealed."""
    return f"`lockstep verify {pipeline} {epoch}`"


def release(pipeline: str, epoch: int, manifest: str) -> str:
    """Lets an epoch go on that its audits hold: with the rows of the manifest that has this hash, and no others."""
    return f"`lockstep release {pipeline} {epoch} --manifest {manifest[:MANIFEST_DIGITS]} --reason 'I looked'`"


def quarantine(pipeline: str, epoch: int, output: str) -> str:
    """Shows the rows of an output that audits sent to quarantine."""
    return f"`lockstep quarantine {pipeline} {epoch} {output}`"


def history(pipeline: str, epoch: int) -> str:
    """Shows an epoch's transitions and actors."""
    return f"`lockstep status {pipeline} --epoch {epoch}`"


def resolve(pipeline: str, epoch: int, sink: str) -> str:
    """Takes a person's word for a decided epoch's outcome in one sink."""
    return f"`lockstep resolve {pipeline} {epoch} {shlex.quote(sink)} applied --reason 'I looked'`"


def complete_command(error: Exception, short: str, whole: str) -> bool:
    """Replace `short` in the error's text by the `whole` command. Returns whether it was there."""
    text = str(error)
    error.args = (text.replace(short, whole),)
    return short in text
