"""`python -m stack up | down | status | env | demo | demo-kafka | demo-lake | clean`: what the Makefile calls."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from lockstep.operations.dev_stacks import forget, remember
from stack.errors import StackError
from stack.landing import demo_days, land
from stack.lifecycle import Stack, checkout_stack

LANDED_DAYS = 14
NOT_RUNNING = 3  # as `systemctl status` and its like say it

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.command()
def up() -> None:
    """Start PostgreSQL, Spark Connect and Airflow, land two weeks of flights; print the UI's address and login."""
    stack = checkout_stack()
    print("the stack is up" if stack.up() else "the stack is up already")
    remember(stack.home.root)
    landed = land(stack.home.landing, demo_days(LANDED_DAYS))
    _print_addresses(stack)
    print(
        f"Data      {landed.files} files of {LANDED_DAYS} days from 2013-01-01, for DAG flights: {stack.home.landing}\n"
        "          to move them: DAG flights > Trigger > Backfill, from 2013-01-01 to 2013-01-14"
    )


@app.command()
def down() -> None:
    """Stop everything that `up` started."""
    stack = checkout_stack()
    print("stopped" if stack.down() else "nothing was running")
    forget(stack.home.root)


@app.command()
def status() -> None:
    """Show each process; exit code 3 when the stack isn't up."""
    stack = checkout_stack()
    for service in stack.services():
        state = f"pid {service.pid}" if service.pid else "not running"
        print(f"{service.name:<22} {state:<14} {service.address}")
    if not stack.is_up:
        raise typer.Exit(NOT_RUNNING)


@app.command()
def env() -> None:
    """Print export lines of the running stack; no passwords in them."""
    home = checkout_stack().home
    if not home.environment.exists():
        raise StackError("the stack isn't up: run `make up`")
    for name, value in json.loads(home.environment.read_text()).items():
        print(f"export {name}={shlex.quote(value)}")


@app.command()
def demo(
    days: Annotated[int, typer.Option(min=1, max=365, help="Days of 2013, from January 1.")] = 14,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON; progress goes to stderr.")] = False,
) -> None:
    """Land real flights, backfill them through the DAG, restate a day, reconcile, stop. Exit code 0 if all agrees."""
    from stack.demo import run_demo

    raise typer.Exit(run_demo(days, as_json))


@app.command()
def demo_kafka(
    days: Annotated[int, typer.Option(min=1, max=364, help="Days of 2013, from January 1.")] = 14,
    seconds: Annotated[float, typer.Option(min=0, help="How long the producer takes to send their flights.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON; progress goes to stderr.")] = False,
) -> None:
    """Send real flights to Kafka while the DAG sums them by hour; compare with a batch. Exit code 0 if all agree."""
    from stack.demo_kafka import run_demo_kafka

    raise typer.Exit(run_demo_kafka(days, seconds, as_json))


@app.command()
def demo_lake(
    days: Annotated[int, typer.Option(min=3, max=365, help="Days of 2013, from January 1.")] = 14,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON; progress goes to stderr.")] = False,
) -> None:
    """Move flights into Delta and Iceberg tables on S3 and Postgres; kill two runs. Exit code 0 if readers agree."""
    from stack.demo_lake import run_demo_lake

    raise typer.Exit(run_demo_lake(days, as_json))


@app.command()
def clean() -> None:
    """Stop everything and delete all data of the stack."""
    stack = checkout_stack()
    stack.clean()
    forget(stack.home.root)


def _print_addresses(stack: Stack) -> None:
    password = json.loads(stack.airflow.passwords.read_text())["admin"]
    print(f"Airflow   {stack.airflow.url}   user admin   password {password}")
    print('`eval "$(.venv/bin/lockstep env)"` points psql, Spark and lockstep at it; `make down` stops it')


def _end_orderly(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)  # so that a half-started stack is stopped


def main() -> None:
    signal.signal(signal.SIGTERM, _end_orderly)
    try:
        app()
    except StackError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
