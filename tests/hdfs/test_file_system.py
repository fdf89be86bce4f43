"""The client of HDFS on a real NameNode: what is created once, what is seen of it, what is told of errors."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count, product

import pytest

from lockstep.errors import StoreRefused
from lockstep.hdfs.address import HdfsAddress
from lockstep.hdfs.file_system import HdfsFileSystem, _os_error
from stack.hdfs import HdfsServer
from tests.proxy import CuttingProxy
from tests.sampling import Sampling
from tests.waiting import until

_numbers = count(1)


@pytest.fixture
def files(hdfs_server: HdfsServer) -> HdfsFileSystem:
    return HdfsFileSystem.at(HdfsAddress.of(hdfs_server.uri))


@pytest.fixture
def folder(files: HdfsFileSystem) -> str:
    path = f"/file-system/{next(_numbers)}"
    files.make_folder(path)
    return path


def test_a_file_is_created_whole_and_once(files: HdfsFileSystem, folder: str) -> None:
    files.create(f"{folder}/a", b"first")
    with pytest.raises(FileExistsError):
        files.create(f"{folder}/a", b"second")
    assert files.read(f"{folder}/a") == b"first"
    assert [found.name for found in files.children(folder)] == ["a"]


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


def test_a_folder_gets_another_name_in_one_step(files: HdfsFileSystem, folder: str) -> None:
    files.make_folder(f"{folder}/draft")
    files.create(f"{folder}/draft/a", b"a")
    files.make_folder(f"{folder}/taken")
    with pytest.raises(FileExistsError):
        files.rename(f"{folder}/draft", f"{folder}/taken")
    files.rename(f"{folder}/draft", f"{folder}/free")
    assert files.read(f"{folder}/free/a") == b"a"


def test_an_answer_that_was_lost_is_no_refusal(
    files: HdfsFileSystem, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = files.rename

    def lose(source: str, target: str) -> None:
        rename(source, target)
        rename(source, target)  # as the client sends it again

    monkeypatch.setattr(files, "rename", lose)
    files.create(f"{folder}/a", b"mine")
    assert files.read(f"{folder}/a") == b"mine"


@contextmanager
def cutting(server: HdfsServer) -> Iterator[tuple[CuttingProxy, HdfsFileSystem]]:
    """A proxy, and a client behind it."""
    host, port = server.uri.removeprefix("hdfs://").split(":")
    with CuttingProxy(host, int(port)) as proxy:
        yield proxy, HdfsFileSystem.at(HdfsAddress.of(f"hdfs://127.0.0.1:{proxy.port}"))


#: Each request by which a file comes to be.
CREATING = ["create", "fsync", "complete", "rename2"]


WHEN = ["before", "after"]


def test_a_connection_that_breaks_leaves_a_whole_file_or_none(
    files: HdfsFileSystem, hdfs_server: HdfsServer, folder: str, sampling: Sampling, subtests: pytest.Subtests
) -> None:
    for times, when, asked in sampling.sample(list(product([1, 2], WHEN, [*CREATING, "addBlock"])), 3):
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


def test_a_name_that_is_taken_stays_whatever_connection_breaks(
    files: HdfsFileSystem, hdfs_server: HdfsServer, folder: str, sampling: Sampling, subtests: pytest.Subtests
) -> None:
    files.create(f"{folder}/a", b"another's")
    for when, asked in sampling.sample(list(product(WHEN, CREATING)), 2):
        with subtests.test(f"{when} {asked}"), cutting(hdfs_server) as (proxy, through):
            proxy.cut_around(when, asked)

            def is_refused(through: HdfsFileSystem = through, proxy: CuttingProxy = proxy) -> bool:
                with pytest.raises(OSError) as raised:
                    through.create(f"{folder}/a", b"mine")
                return bool(proxy.cuts) and isinstance(raised.value, FileExistsError)

            until(is_refused, "the client tells of a connection that broke by several requests")
            assert proxy.cuts == 1
            assert files.read(f"{folder}/a") == b"another's"
            assert [found.name for found in files.children(folder)] == ["a"]


def test_a_folder_is_created_once_whatever_connection_breaks(
    files: HdfsFileSystem, hdfs_server: HdfsServer, folder: str, subtests: pytest.Subtests
) -> None:
    for when in WHEN:
        place = f"{folder}/{when}"
        files.make_folder(place)
        with subtests.test(when), cutting(hdfs_server) as (proxy, through):
            proxy.cut_around(when, "rename2")
            with suppress(ConnectionError, OSError):
                through.create_folder(f"{place}/a", f"{place}/draft")
            assert proxy.cuts == 1
            if when == "before":
                assert files.find(f"{place}/a") is None
                through.create_folder(f"{place}/a", f"{place}/draft")
            with pytest.raises(FileExistsError):
                through.create_folder(f"{place}/a", f"{place}/draft")
            assert [found.name for found in files.children(place)] == ["a"]


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


@pytest.mark.tier("all")  # the next test has the answer; the server is asked by two programs
def test_safe_mode_is_told_in_a_sentence(hdfs_server: HdfsServer, files: HdfsFileSystem, folder: str) -> None:
    hdfs_server.administer("-safemode", "enter")
    try:
        with pytest.raises(OSError, match="NameNode is in safe mode and takes no changes") as refused:
            files.create(f"{folder}/a", b"")
    finally:
        hdfs_server.administer("-safemode", "leave")
    assert refused.value.errno == errno.EROFS and "\n" not in str(refused.value)


def test_a_standby_and_safe_mode_are_told_in_a_sentence() -> None:
    said = (
        'RPCError("org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported in state '
        'standby. Visit https://s.apache.org/sbnn-error\\n\\tat org.apache.hadoop.hdfs.server.namenode.ha.Standby")'
    )
    assert str(_os_error(said, "/a")).startswith("[Errno 11] HDFS: no NameNode that answers is the active one")
    said = (
        'RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "Cannot create file/a. Name node is in '
        'safe mode.\\nIt was turned on manually.\\n\\tat org.apache.hadoop.hdfs.server.namenode.FSNamesystem")'
    )
    told = _os_error(said, "/a")
    assert told.errno == errno.EROFS and "\n" not in str(told)
    assert "NameNode is in safe mode and takes no changes" in str(told)


def test_size_time_and_kind_are_told(files: HdfsFileSystem, folder: str) -> None:
    files.create(f"{folder}/a", b"four")
    files.make_folder(f"{folder}/b")
    a, b = sorted(files.children(folder), key=lambda found: found.path)
    assert (a.path, a.size, a.is_folder, b.path, b.is_folder) == (f"{folder}/a", 4, False, f"{folder}/b", True)
    assert a == files.find(f"{folder}/a")
    assert a.mtime_ns > 1_700_000_000_000_000_000
    assert files.find(f"{folder}/nothing") is None


def test_more_names_than_one_answer_holds_are_all_told(files: HdfsFileSystem, folder: str) -> None:
    for number in range(1_100):  # the NameNode tells a thousand at once
        files.make_folder(f"{folder}/{number}")
    assert len(list(files.children(folder))) == 1_100


def test_names_are_taken_as_they_are(files: HdfsFileSystem, folder: str) -> None:
    for name in ("a b", "a%20b", "ä", "a#b?c", "[1]*"):
        files.create(f"{folder}/{name}", name.encode())
        assert files.read(f"{folder}/{name}") == name.encode()
    assert sorted(found.name for found in files.children(folder)) == sorted(["a b", "a%20b", "ä", "a#b?c", "[1]*"])


def test_a_large_file_is_read_bit_by_bit_and_anywhere(files: HdfsFileSystem, folder: str) -> None:
    data = os.urandom(9 << 20)
    files.write(f"{folder}/large", data)
    with files.open(f"{folder}/large") as file:
        assert file.read(10) == data[:10]
        assert file.seek(5 << 20) == 5 << 20
        assert file.read(1 << 20) == data[5 << 20 : 6 << 20]
        file.seek(-3, os.SEEK_END)
        assert file.read() == data[-3:]
        assert file.read() == b""


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


@pytest.mark.tier("all")  # the client tries for seconds
def test_no_cluster_is_an_oserror() -> None:
    files = HdfsFileSystem.at(HdfsAddress.of("hdfs://127.0.0.1:1"))
    with pytest.raises(OSError, match="refused"):
        files.find("/")


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
