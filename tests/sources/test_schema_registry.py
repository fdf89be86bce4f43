"""What is asked of a schema registry, and what is told where it doesn't answer as one."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Iterator

import pytest

from lockstep.connections.kafka.connection import Asker
from lockstep.connections.kafka.schema_registry import Registered, SchemaRegistry
from lockstep.errors import SourceRefused, SourceUnavailable
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


def test_every_schema_of_the_subjects_that_can_be_read_is_known_by_its_id(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    registry.register("orders-value", 7, "long", references=[])
    registry.register("orders-value", 300, "int", schemaType="AVRO")
    registry.register("a/b value", 8, "int")
    registry.register("others-value", 9, "int")
    registry.register("orders-value", 10, "int", schemaType="PROTOBUF")
    registry.register("orders-value", 11, "int", references=[{"name": "a", "subject": "b"}])
    found = asking(f"{registry.url}/").schemas_of(["orders-value", "a/b value"])
    assert found == {7: "long", 300: "int", 8: "int"}
    for unread in (10, 11):
        assert f"schema {unread} of subject orders-value isn't used" in caplog.text
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


@pytest.mark.fault("J21")
def test_what_a_registry_listed_too_late_is_known_by_its_id(registry: Registry) -> None:
    registry.register("orders-value", 7, "long")
    registry.register("orders-value", 8, "int")
    registry.register("orders-key", 9, "int")
    registry.register("orders-value", 10, "int", schemaType="PROTOBUF")
    registry.behind = {8: 2}
    found = asking(registry.url)
    assert found.schemas_of(["orders-value"]) == {7: "long"}
    assert found.find_known({8, 9, 10, 11}, ["orders-value"]) == {8}


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
