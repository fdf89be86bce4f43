"""What is asked of a schema registry, and what is told where it doesn't answer as one."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from lockstep.errors import InvalidPipeline, SourceRefused, SourceUnavailable
from lockstep.kafka.connection import Asker
from lockstep.kafka.schema_registry import Registered, SchemaRegistry
from tests.sources.schema_registry import Registry, serving

SECRET = "s3cr3t"


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(Registry()) as found:
        yield found


def asking(url: str) -> SchemaRegistry:
    return SchemaRegistry("schemas", Asker("source events", SourceUnavailable, SourceRefused), url)


def with_login(registry: Registry, login: str) -> str:
    return registry.url.replace("://", f"://{login}@")


def test_every_schema_of_the_subjects_is_known_by_its_id(registry: Registry) -> None:
    registry.register("orders-value", 7, "long", references=[])
    registry.register("orders-value", 300, "int", schemaType="AVRO")
    registry.register("a/b value", 8, "int")
    registry.register("others-value", 9, "int")
    found = asking(f"{registry.url}/").schemas_of(["orders-value", "a/b value"])
    assert found == {7: "long", 300: "int", 8: "int"}
    assert all(path.endswith("?deleted=true") for path in registry.asked)  # records of deleted versions are still there


def test_the_login_is_that_of_the_connection_and_nothing_tells_it(
    caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    basic = f"Basic {b64encode(b'reader:s3cr3t').decode()}"
    for login, header in [("reader:s3cr3t", basic), (":s3cr3t", "Bearer s3cr3t")]:
        with subtests.test(login=login), serving(Registry()) as registry:
            registry.login = header
            registry.register("orders-value", 7, "long")
            caplog.set_level(logging.DEBUG)
            caplog.clear()
            found = asking(with_login(registry, login))
            assert found.schemas_of(["orders-value"]) == {7: "long"}
            with pytest.raises(SourceRefused, match="schemas answers 401 for subject orders-value") as failure:
                asking(with_login(registry, f"{login}0")).schemas_of(["orders-value"])
            told = f"{failure.value} {found!r} {caplog.text}"
            assert not [secret for secret in (SECRET, header.split()[1], registry.url) if secret in told]


def test_a_redirection_gets_no_login(registry: Registry) -> None:
    with serving(Registry()) as elsewhere:
        elsewhere.register("orders-value", 7, "long")
        registry.moved = elsewhere.url
        with pytest.raises(SourceRefused, match="answers 307"):
            asking(with_login(registry, "reader:s3cr3t")).schemas_of(["orders-value"])
        assert elsewhere.asked == []


@pytest.mark.fault("J21")
def test_a_subject_that_isnt_there_is_refused_and_so_is_who_is_no_registry(registry: Registry) -> None:
    with pytest.raises(SourceRefused, match="has no subject orders-value: say by `subjects`"):
        asking(registry.url).schemas_of(["orders-value"])
    registry.register("orders-value", 7, "long")
    with pytest.raises(SourceRefused, match="answers 404 for subject orders-value"):
        asking(f"{registry.url}/elsewhere").schemas_of(["orders-value"])


@pytest.mark.fault("J21")
def test_a_registry_that_fails_is_asked_again_and_not_for_ever(registry: Registry) -> None:
    registry.register("orders-value", 7, "long")
    registry.failing = 2
    assert asking(registry.url).schemas_of(["orders-value"]) == {7: "long"}
    registry.failing = 100
    with pytest.raises(SourceUnavailable, match="doesn't answer: 503"):
        asking(registry.url).schemas_of(["orders-value"])
    with pytest.raises(SourceUnavailable, match="doesn't answer: ConnectError"):
        asking("http://127.0.0.1:1").schemas_of(["orders-value"])


def test_a_schema_that_cant_be_read_is_left_out_and_told(
    caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    unread: list[dict[str, Any]] = [{"schemaType": "PROTOBUF"}, {"references": [{"name": "a", "subject": "b"}]}]
    for more in unread:
        with subtests.test(more=more), serving(Registry()) as registry:
            caplog.clear()
            registry.register("orders-value", 7, "long")
            registry.register("orders-value", 8, "int", **more)
            assert asking(registry.url).schemas_of(["orders-value"]) == {7: "long"}
            assert "schema 8 of subject orders-value isn't used" in caplog.text


@pytest.mark.fault("J21")
def test_what_a_registry_listed_too_late_is_known_by_its_id(subtests: pytest.Subtests) -> None:
    for listings in [1, 2, 100]:
        with subtests.test(listings=listings), serving(Registry()) as registry:
            registry.register("orders-value", 7, "long")
            registry.register("orders-value", 8, "int")
            registry.register("orders-key", 9, "int")
            registry.register("orders-value", 10, "int", schemaType="PROTOBUF")
            registry.behind = {8: listings}
            found = asking(registry.url)
            assert found.schemas_of(["orders-value"]) == {7: "long"}
            assert found.find_known({8, 9, 10, 11}, ["orders-value"]) == {8}


def test_of_a_registry_that_knows_no_ids_its_listing_is_believed(registry: Registry) -> None:
    registry.register("orders-value", 7, "long")
    registry.knows_ids = False
    registry.behind = {7: 1}
    found = asking(registry.url)
    assert [found.find_known({7, 8}, ["orders-value"]) for _ in range(2)] == [set(), {7}]


def test_a_registry_that_fails_for_an_id_is_no_answer(registry: Registry) -> None:
    registry.register("orders-value", 7, "long")
    answered = registry.answer

    def failing(path: str, authorization: str | None, posted: object = None) -> tuple[int, object]:
        return (503, None) if "/ids/" in path else answered(path, authorization, posted)

    registry.answer = failing  # type: ignore[method-assign]
    with pytest.raises(SourceUnavailable, match="doesn't answer: 503"):
        asking(registry.url).find_known({8}, ["orders-value"])


def test_the_newest_schema_is_found_unless_it_cant_be_used(registry: Registry) -> None:
    with pytest.raises(SourceRefused, match="has no subject a/b value: say by"):
        asking(registry.url).latest("a/b value")
    registry.register("a/b value", 7, "long")
    registry.register("a/b value", 5, "int")
    assert asking(registry.url).latest("a/b value") == Registered(5, "int")
    registry.register("a/b value", 8, "x", schemaType="PROTOBUF")
    with pytest.raises(SourceRefused, match="schema 8 of subject a/b value can't be used: it is PROTOBUF"):
        asking(registry.url).latest("a/b value")


def test_a_schema_that_is_registered_has_one_id_and_what_isnt_taken_is_told(registry: Registry) -> None:
    registry.login = f"Basic {b64encode(b'writer:s3cr3t').decode()}"
    found = asking(with_login(registry, "writer:s3cr3t"))
    registry.failing = 1
    assert found.register("a/b value", "int") == found.register("a/b value", "int") == Registered(1, "int")
    assert found.register("other", "int") == Registered(1, "int")
    assert len(registry.subjects["a/b value"]) == 1
    for status, why in {409: "it isn't compatible", 422: "it takes none there", 403: "may the login register"}.items():
        registry.refusing = status
        with pytest.raises(SourceRefused, match=rf"for subject other.*{why}") as failure:
            found.register("other", "long")
        assert SECRET not in str(failure.value) and str(status) in str(failure.value)
    with pytest.raises(SourceRefused, match=r"answers 401 for subject other.*may the login register") as failure:
        asking(with_login(registry, "writer:s3cr3t0")).register("other", "long")
    assert SECRET not in str(failure.value)


def test_what_is_no_url_is_refused_and_not_repeated(subtests: pytest.Subtests) -> None:
    for dsn in ["s3cr3t", "ftp://s3cr3t", "http://", "http://:ä@host"]:
        with subtests.test(dsn=dsn):
            with pytest.raises(InvalidPipeline, match="connection schemas") as failure:
                asking(dsn).schemas_of(["orders-value"])
            assert SECRET not in str(failure.value)
