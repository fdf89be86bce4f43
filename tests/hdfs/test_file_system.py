"""The client of HDFS on a real NameNode, and a WAL there: what is created once, what is seen, what errors say."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count, product

import pytest

from lockstep.connections.hdfs.address import HdfsAddress
from lockstep.connections.hdfs.file_system import HdfsFileSystem, _os_error
from lockstep.errors import StagingRefused, StoreRefused
from lockstep.wal._storage import Entry, Kind
from lockstep.wal.storages import HdfsStorage, storage_at
from stack.hdfs import HdfsServer
from tests.proxy import CuttingProxy
from tests.sampling import Sampling

_numbers = count(1)


@pytest.fixture
def files(hdfs_server: HdfsServer) -> HdfsFileSystem:
    return HdfsFileSystem.at(HdfsAddress.of(hdfs_server.uri))


@pytest.fixture
def folder(files: HdfsFileSystem) -> str:
    path = f"/file-system/{next(_numbers)}"
    files.make_folder(path)
    return path


def test_of_many_who_create_one_name_exactly_one_wins(files: HdfsFileSystem, folder: str) -> None:
    def create(number: int) -> int | None:
        try:
            files.create(f"{folder}/marker", f"{number}".encode())
        except FileExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        won = [number for number in pool.map(create, range(40)) if number is not None]
    assert [f"{number}".encode() for number in won] == [files.read(f"{folder}/marker")]
    assert [found.name for found in files.children(folder)] == ["marker"]


def test_a_rename_never_takes_a_name_that_is_there(files: HdfsFileSystem, folder: str) -> None:
    files.create(f"{folder}/a", b"a")
    files.create(f"{folder}/b", b"b")
    with pytest.raises(FileExistsError):
        files.rename(f"{folder}/a", f"{folder}/b")
    files.make_folder(f"{folder}/c")
    with pytest.raises(OSError, match="both be directories"):
        files.rename(f"{folder}/a", f"{folder}/c")
    files.rename(f"{folder}/a", f"{folder}/d")
    assert (files.read(f"{folder}/b"), files.read(f"{folder}/d")) == (b"b", b"a")
    with pytest.raises(FileNotFoundError):
        files.rename(f"{folder}/a", f"{folder}/e")
    files.make_folder(f"{folder}/draft")
    files.create(f"{folder}/draft/a", b"a")
    with pytest.raises(FileExistsError):
        files.rename(f"{folder}/draft", f"{folder}/c")
    files.rename(f"{folder}/draft", f"{folder}/free")
    assert files.read(f"{folder}/free/a") == b"a"


@contextmanager
def cutting(server: HdfsServer) -> Iterator[tuple[CuttingProxy, HdfsFileSystem]]:
    """A proxy, and a client behind it."""
    host, port = server.uri.removeprefix("hdfs://").split(":")
    with CuttingProxy(host, int(port)) as proxy:
        yield proxy, HdfsFileSystem.at(HdfsAddress.of(f"hdfs://127.0.0.1:{proxy.port}"))


CREATING = ["create", "addBlock", "fsync", "complete", "rename2"]  #: each request by which a file comes to be


def test_a_connection_that_breaks_leaves_a_whole_file_or_none(
    files: HdfsFileSystem, hdfs_server: HdfsServer, folder: str, sampling: Sampling, subtests: pytest.Subtests
) -> None:
    for times, when, asked in sampling.sample(list(product([1, 2], ["before", "after"], CREATING)), 3):
        place = f"{folder}/{asked}-{when}-{times}"
        files.make_folder(place)
        with subtests.test(place), cutting(hdfs_server) as (proxy, through):
            proxy.cut_around(when, asked, times)
            while proxy.cuts < times or files.find(f"{place}/a") is None:
                try:
                    through.create(f"{place}/a", b"mine")
                except OSError as error:
                    assert not isinstance(error, FileExistsError), "nobody else made it"
                    assert files.find(f"{place}/a") is None
                else:
                    break
            proxy.cut()
            assert proxy.cuts
            assert files.read(f"{place}/a") == b"mine"
            with pytest.raises(FileExistsError):
                through.create(f"{place}/a", b"mine again")
            left = {found.name for found in files.children(place)}
            assert "a" in left and len(left) <= 1 + times, "only what couldn't be taken away, as that was cut, too"


def test_every_block_is_on_the_disks_before_the_next_is_begun(
    files: HdfsFileSystem, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hdfs_native

    block, synced = 1 << 20, list[int]()
    hsync = hdfs_native.FileWriter.hsync

    def note(writer: hdfs_native.FileWriter) -> None:
        synced.append(file._written)
        hsync(writer)

    monkeypatch.setattr(hdfs_native.FileWriter, "hsync", note)
    monkeypatch.setattr(hdfs_native, "WriteOptions", partial(hdfs_native.WriteOptions, block_size=block))
    with files.writing(f"{folder}/a") as file:
        data = os.urandom(5 * block // 2)
        file.write(data[: block // 2])
        file.write(data[block // 2 :])
    with files.writing(f"{folder}/b") as file:
        file.write(data[: 2 * block])
    assert synced == [block, 2 * block, 5 * block // 2, block, 2 * block, 2 * block]
    assert files.read(f"{folder}/a") == data
    assert files.read(f"{folder}/b") == data[: 2 * block]


def test_safe_mode_and_a_standby_are_told_in_a_sentence(
    hdfs_server: HdfsServer, files: HdfsFileSystem, folder: str
) -> None:
    hdfs_server.administer("-safemode", "enter")
    try:
        with pytest.raises(OSError, match="NameNode is in safe mode and takes no changes") as refused:
            files.create(f"{folder}/a", b"")
    finally:
        hdfs_server.administer("-safemode", "leave")
    assert refused.value.errno == errno.EROFS and "\n" not in str(refused.value)
    standby = (
        'RPCError("org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported in state '
        'standby. Visit https://s.apache.org/sbnn-error\\n\\tat org.apache.hadoop.hdfs.server.namenode.ha.Standby")'
    )
    assert str(_os_error(standby, "/a")).startswith("[Errno 11] HDFS: no NameNode that answers is the active one")


def test_what_is_in_a_folder_is_told_as_it_is(files: HdfsFileSystem, folder: str) -> None:
    names = ["a b", "a%20b", "ä", "a#b?c", "[1]*"]
    for name in names:
        files.create(f"{folder}/{name}", b"four")
        assert files.read(f"{folder}/{name}") == b"four"
    for number in range(1_100):  # the NameNode tells a thousand at once
        files.make_folder(f"{folder}/{number}")
    found = {one.name: one for one in files.children(folder)}
    assert found.keys() == {*names, *map(str, range(1_100))}
    told = found["a b"]
    assert (told.path, told.size, told.is_folder, found["7"].is_folder) == (f"{folder}/a b", 4, False, True)
    assert told == files.find(f"{folder}/a b") and told.mtime_ns > 1_700_000_000_000_000_000
    assert files.find(f"{folder}/nothing") is None


def test_errors_have_their_class_and_their_path(files: HdfsFileSystem, folder: str) -> None:
    files.create(f"{folder}/a", b"")
    with pytest.raises(FileNotFoundError, match=f"{folder}/b"):
        files.read(f"{folder}/b")
    with pytest.raises(FileNotFoundError):
        list(files.children(f"{folder}/b"))
    with pytest.raises(NotADirectoryError):
        list(files.children(f"{folder}/a"))
    with pytest.raises(NotADirectoryError):
        files.make_folder(f"{folder}/a/b")
    with pytest.raises(FileNotFoundError):
        files.write(f"{folder}/b/c", b"")
    with pytest.raises(FileExistsError):
        files.write(f"{folder}/a", b"")
    assert not files.delete(f"{folder}/b")


def test_who_may_not_is_told_so(hdfs_server: HdfsServer, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "nobody")
    other = HdfsFileSystem.at(HdfsAddress.of(hdfs_server.uri))
    with pytest.raises(PermissionError, match="nobody"):
        other.create(f"{folder}/a", b"")


def test_a_child_of_a_process_that_has_used_hdfs_is_refused(files: HdfsFileSystem, folder: str) -> None:
    files.create(f"{folder}/a", b"read just now, by a connection that is kept")
    files.read(f"{folder}/a")
    child = os.fork()
    if child == 0:
        told = 1
        try:
            files.read(f"{folder}/a")
        except StoreRefused:
            told = 0
        finally:
            os._exit(told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# --- a WAL -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def storage(hdfs_uri: str) -> HdfsStorage:
    return HdfsStorage.at(hdfs_uri)


def test_a_folder_and_a_file_are_made_once_and_replaced_or_moved_on_request(storage: HdfsStorage) -> None:
    storage.make_folder("a/b")
    storage.create("a/b/c", b"first")
    with pytest.raises(FileExistsError):
        storage.make_folder("a/b")
    for make in (storage.create, storage.put):
        with pytest.raises(FileExistsError):
            make("a/b/c", b"second")
    with pytest.raises(FileNotFoundError):
        storage.create("a/none/c", b"")
    storage.put("a/d/e", b"with its parents")
    assert storage.open("a/b/c").read() == b"first"
    assert storage.children("a") == [Entry("a/b", Kind.FOLDER), Entry("a/d", Kind.FOLDER)]
    storage.replace("a/b/c", b"22")
    storage.move("a/d/e", "a/b/c")
    assert storage.open("a/b/c").read() == b"with its parents"
    assert storage.children("a/b") == [Entry("a/b/c", Kind.FILE)]
    assert not storage.exists("a/d/e") and storage.exists("a/d")


def test_only_an_empty_folder_is_removed(storage: HdfsStorage) -> None:
    storage.put("a/b", b"")
    with pytest.raises(OSError) as refused:
        storage.remove_folder("a")
    assert refused.value.errno == errno.ENOTEMPTY
    storage.delete("a/b")
    storage.remove_folder("a")
    gone: list[Callable[[], object]] = [
        lambda: storage.delete("a/b"),
        lambda: storage.remove_folder("a"),
        lambda: storage.children("a"),
    ]
    for ask in gone:
        with pytest.raises(FileNotFoundError):
            ask()


def test_no_path_leads_out_of_it_and_no_address_has_options(storage: HdfsStorage, hdfs_uri: str) -> None:
    with pytest.raises(StagingRefused):
        storage.exists("../a")
    for uri in (f"{hdfs_uri}?user=x", "hdfs://a:hidden@b/c", "viewfs://a/b"):
        with pytest.raises(StagingRefused) as refused:
            storage_at(uri)
        assert "hidden" not in str(refused.value)
