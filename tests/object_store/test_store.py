"""The objects of a real S3 server: put once, read as one, and found to be one's own when an answer was lost."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path

import obstore
import pytest

from lockstep.connections.object_store.client import open_mark
from lockstep.connections.object_store.store import Children, ObjectChanged, ObjectStore, UnreadableKey
from lockstep.errors import StoreRefused
from lockstep.wal.staging import Staging
from lockstep.wal.storages import storage_at
from stack.s3 import S3Server
from tests.s3_proxy import Fault, S3Proxy


@pytest.fixture
def store(s3_uri: str) -> ObjectStore:
    return ObjectStore.at(f"{s3_uri}/a prefix")


@pytest.fixture
def proxy(s3_environment: S3Server) -> Iterator[S3Proxy]:
    with S3Proxy(s3_environment.endpoint) as proxy:
        yield proxy


@pytest.fixture
def through(proxy: S3Proxy, s3_uri: str) -> ObjectStore:
    """A store that is asked through the proxy."""
    host = proxy.endpoint.removeprefix("http://")
    return ObjectStore.at(f"{s3_uri}/a%20prefix?endpoint_override={host}&scheme=http")


def everything(store: ObjectStore) -> dict[str, bytes]:
    return {found.path: store.read(found.path) for found in store.find_below("")}


def test_of_twenty_who_create_at_once_one_does(store: ObjectStore) -> None:
    start = threading.Barrier(20)

    def created(number: int) -> bool:
        start.wait()
        try:
            store.create("marker", b"the same in all")
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(20) as writers:
        assert sum(writers.map(created, range(20))) == 1


def test_an_object_is_swapped_for_the_one_that_was_seen_only(store: ObjectStore) -> None:
    store.create("head", b"1")
    seen = store.find("head")
    assert seen is not None
    store.swap(seen, b"2")
    with pytest.raises(ObjectChanged):
        store.swap(seen, b"3")
    assert store.read("head") == b"2"
    store.delete(["head"])
    with pytest.raises(ObjectChanged):
        store.swap(seen, b"4")
    assert store.find("head") is None


FAULTS = [Fault.ERROR, Fault.SLOW_DOWN, Fault.ERROR_AFTER, Fault.LOST_ANSWER, Fault.CUT_UPLOAD]


@pytest.mark.fault("B21")
def test_a_put_that_was_disturbed_is_done_once_and_knows_its_own(
    through: ObjectStore, proxy: S3Proxy, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    file = tmp_path / "big"
    file.write_bytes(bytes(range(256)) * 50_000)
    for fault, act in product(FAULTS, ["create", "swap", "put_file"]):
        with subtests.test(f"{fault} of a {act}"):
            name, data, hits = f"{fault.name}-{act}/x", b"mine" * 1000, proxy.hits[fault]
            if act == "swap":
                through.create(name, b"before")
            seen = through.find(name)
            proxy.plan(fault, "PUT", name)
            if act == "put_file":
                data, etag = file.read_bytes(), through.put_file(name, file)
                assert [one.etag for one in through.find_below(name.partition("/")[0])] == [etag]
            else:
                through.swap(seen, data) if seen is not None else through.create(name, data)
            assert proxy.hits[fault] == hits + 1
            assert {found.path for found in through.find_below(name.partition("/")[0])} == {name}
            assert through.read(name) == data
            with pytest.raises(FileExistsError):
                through.create(name, data)
    assert not [path for _, path in proxy.requests if "uploadId" in path], "a file is put by one request"


def test_a_disturbed_put_doesnt_take_anothers_object_for_its_own(
    store: ObjectStore, through: ObjectStore, proxy: S3Proxy, subtests: pytest.Subtests
) -> None:
    store.create("x", b"the same")
    for fault in (Fault.ERROR, Fault.ERROR_AFTER, Fault.LOST_ANSWER):
        with subtests.test(fault):
            proxy.plan(fault, "PUT", "/x")
            with pytest.raises(FileExistsError):
                through.create("x", b"the same")
            assert proxy.hits[fault] == 1


def test_a_put_whose_every_answer_is_lost_is_found_all_the_same(through: ObjectStore, proxy: S3Proxy) -> None:
    proxy.plan(Fault.LOST_ANSWER, "PUT", "/x", times=1000)
    through.create("x", b"mine")
    assert everything(through) == {"x": b"mine"}


def test_the_trial_passes_a_store_that_keeps_to_conditions_and_leaves_nothing(store: ObjectStore) -> None:
    store.require_conditional_put("folder")
    assert everything(store) == {}
    with pytest.raises(StoreRefused, match="no path of an object"):
        store.read("a/../b")


REST = "<Size>1</Size><ETag>1</ETag><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
LISTING = "<ListBucketResult><IsTruncated>false</IsTruncated>{}</ListBucketResult>"


class _Heedless(BaseHTTPRequestHandler):
    """A store that takes every object, whatever it is told, and lists one, if somebody else chose its `key`."""

    protocol_version = "HTTP/1.1"
    key = ""

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["content-length"] or 0))
        self._answer(200, ETag='"1"', Last_Modified="Mon, 01 Jan 2024 00:00:00 GMT")

    def do_GET(self) -> None:
        """A list; nothing is found, otherwise."""
        key = "".join(f"&#{ord(one)};" for one in self.key)
        found = f"<Contents><Key>{key}</Key>{REST}</Contents>" if key else ""
        listed = "list-type=2" in self.path
        self._answer(200 if listed else 404, LISTING.format(found) if listed else "")

    def do_HEAD(self) -> None:
        self._answer(404)

    def _answer(self, code: int, body: str = "", **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_POST = do_DELETE = do_PUT

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def heedless() -> Iterator[str]:
    """The URI of a place in this store."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Heedless) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"s3://foreign/x?endpoint_override=127.0.0.1:{server.server_port}&scheme=http"
        server.shutdown()


@pytest.mark.fault("B22")
def test_a_store_that_doesnt_heed_conditions_is_refused_by_name(s3_environment: S3Server) -> None:
    with heedless() as uri:
        with pytest.raises(StoreRefused, match=r"s3://foreign/x doesn't keep to If-None-Match"):
            ObjectStore.at(uri).require_conditional_put("")
        with pytest.raises(StoreRefused, match="doesn't keep to If-None-Match"):
            Staging(uri).create("deployment/pipeline/epoch=1/2")


# --- reading ---


def test_an_object_is_read_by_ranges_like_a_file(store: ObjectStore) -> None:
    content = bytes(range(256)) * 50_000
    store.replace("big", content)
    store.replace("empty", b"")
    with store.open("big") as file:
        assert file.seek(0, 2) == len(content)
        file.seek(9_000_000)
        assert file.read(300) == content[9_000_000:9_000_300]
        assert file.seek(10) == 10
        assert file.read() == content[10:]
    with store.open("empty") as file:
        assert file.read() == b""
    with pytest.raises(FileNotFoundError):
        store.open("none")


def test_what_is_read_is_one_object_even_if_another_takes_its_place(store: ObjectStore) -> None:
    store.replace("big", bytes(10_000_000))
    with store.open("big") as file:
        assert file.read(10) == bytes(10)
        store.replace("big", b"\1" * 10_000_000)
        with pytest.raises(ObjectChanged):
            file.read()
    etag = store.find("big").etag  # type: ignore[union-attr]
    store.replace("big", b"\2")
    with pytest.raises(ObjectChanged):
        store.open("big", etag)


def test_a_list_has_every_object_of_many(store: ObjectStore) -> None:
    names = [f"many/{number:04}" for number in range(1100)]
    with ThreadPoolExecutor(16) as writers:
        list(writers.map(lambda name: store.replace(name, b""), names))
    store.replace("many/deeper/x", b"")
    assert [found.path for found in store.children("many").objects] == names
    assert store.children("many").folders == ("many/deeper",)
    assert sorted(found.path for found in store.find_below("many")) == sorted([*names, "many/deeper/x"])
    store.delete([found.path for found in store.find_below("many")])
    assert not store.has_folder("many")


def test_a_mark_of_hadoops_is_a_folder_and_no_object(store: ObjectStore) -> None:
    obstore.put(open_mark(store.address, None, "folder=1"), "", b"")
    assert store.children("folder=1") == Children((), (), marked=True)
    assert list(store.find_below("folder=1")) == []
    assert store.has_folder("folder=1")
    store.delete_mark("folder=1")
    assert not store.has_folder("folder=1")


def test_an_object_that_keeps_a_folder_from_being_listed_is_named(
    s3_environment: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with heedless() as uri:
        store = ObjectStore.at(uri)
        for key in ("x/in//a.csv", "x/a\nb.csv", "x/in/../a.csv", "x/in/./a.csv", "x/a\x7fb.csv"):
            monkeypatch.setattr(_Heedless, "key", key)
            for look in (lambda: store.children(""), lambda: list(store.find_below(""))):
                with pytest.raises(UnreadableKey, match="delete it, or put it elsewhere") as refused:
                    look()
                assert repr(key) in str(refused.value)


# --- logins ---


def test_a_login_of_a_connection_goes_before_the_environments(
    s3_environment: S3Server, s3_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ObjectStore.at(s3_uri).create("x", b"1")
    login = f"aws://{s3_environment.access_key}:{s3_environment.secret_key}@/?region_name=us-east-1"
    login += f"&endpoint_url={s3_environment.endpoint.replace(':', '%3A').replace('/', '%2F')}"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "somebody else's")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert ObjectStore.at(s3_uri, login).read("x") == b"1"


def test_a_login_that_is_refused_is_named_and_not_repeated(s3_environment: S3Server, s3_uri: str) -> None:
    login = f"aws://{s3_environment.access_key}:hunter2@/?region_name=us-east-1"
    ObjectStore.at(s3_uri).create("x", b"1")
    with pytest.raises(PermissionError, match="refuses the login") as refused:
        ObjectStore.at(s3_uri, login).read("x")
    assert "hunter2" not in str(refused.value) and s3_environment.access_key not in str(refused.value)
    assert "hunter2" not in repr(ObjectStore.at(s3_uri, login).__dict__)
    for no_login in ("aws://key@/", "postgres://a:hunter2@b", "aws://[hunter2", "aws://"):
        with pytest.raises(StoreRefused) as malformed:
            ObjectStore.at("s3://bucket/x", no_login)
        assert "hunter2" not in str(malformed.value)


def test_a_forked_child_of_a_user_is_refused_and_doesnt_hang(store: ObjectStore) -> None:
    store.create("x", b"1")
    child = os.fork()
    if not child:
        code = 1
        try:
            store.read("x")
        except StoreRefused:
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_a_store_or_a_bucket_that_isnt_there_is_named(s3_environment: S3Server) -> None:
    with pytest.raises(OSError, match="Connection refused"):
        ObjectStore.at("s3://bucket?endpoint_override=127.0.0.1:9&scheme=http", "aws://k:s@/").read("x")
    with pytest.raises(OSError, match="NoSuchBucket"):
        list(ObjectStore.at("s3://no-such-bucket/x").find_below(""))


def test_a_look_and_a_listing_call_an_objects_bytes_alike(s3_uri: str) -> None:
    storage = storage_at(f"{s3_uri}/a prefix")
    for size in (0, 1, 100_000):
        storage.put(f"folder/{size}", b"x" * size)
    listed = storage.stamps("folder")
    assert {name: storage.stamp(f"folder/{name}") for name in listed} == listed
    assert sorted(found.size for found in listed.values()) == [0, 1, 100_000]
    assert all(found.etag for found in listed.values())
