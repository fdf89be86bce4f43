"""A connection to Kafka: its settings for librdkafka and for Java clients, its errors, its login.

Spark's Kafka source is a Java client. Its options hold the login: classic plans don't show them, but Spark Connect
shows the text of its requests, so `hide_login` redacts them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from lockstep.connections.login import Login, entered
from lockstep.connections.names import Dataset
from lockstep.errors import InvalidPipeline, LockstepError, PreflightRefused, SinkUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BOOTSTRAP = "bootstrap.servers"
USERNAME, PASSWORD = "sasl.username", "sasl.password"
_MECHANISMS = ("sasl.mechanism", "sasl.mechanisms")
#: SASL mechanisms with a login and a password.
_BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
#: Settings that Lockstep sets itself, because the guarantee depends on them.
OURS = frozenset(
    {"transactional.id", "enable.idempotence", "acks", "isolation.level", "group.id", "enable.auto.commit"}
    | {"enable.partition.eof", "transaction.timeout.ms", "message.timeout.ms", "delivery.timeout.ms"}
    | {"request.required.acks", "auto.offset.reset"}
)
#: The parameter of an Airflow Connection's URI that holds a nested extra.
NESTED = "__extra__"

Settings = dict[str, str]


def settings_of(dsn: str, who: str) -> Settings:
    """Return librdkafka's settings of a connection. Raises `InvalidPipeline` without quoting `dsn`.

    `dsn`: "host:port,host:port"; or a JSON object of librdkafka's settings; or a URI as Airflow makes it from a Kafka
    Connection, whose extra is that object: kafka://host:port/?security.protocol=SASL_SSL&…. A login and a password in
    front of its host are `sasl.username` and `sasl.password`.
    """
    text = dsn.strip()
    if text.startswith("{"):
        settings = _of_json(text, who)
    elif "://" in text:
        settings = _of_uri(text, who)
    else:
        settings = {BOOTSTRAP: text}
    if not settings.get(BOOTSTRAP):
        raise InvalidPipeline(f"{who}: the connection names no {BOOTSTRAP}")
    if "@" in settings[BOOTSTRAP]:
        raise InvalidPipeline(
            f"{who}: the connection has an @ among its hosts. For a login and a password give a URI, "
            "kafka://login:password@host:port/?security.protocol=…, or "
            f"{USERNAME} and {PASSWORD} as settings"
        )
    if reserved := sorted(OURS & settings.keys()):
        raise InvalidPipeline(
            f"{who}: the connection sets {', '.join(reserved)}, which Lockstep sets itself; remove it"
        )
    return settings


def dataset_of(dsn: str, topic: str, who: str) -> Dataset:
    """Return the lineage dataset of a topic, named by the connection's first broker. Raises `InvalidPipeline`."""
    host, _, port = settings_of(dsn, who)[BOOTSTRAP].split(",")[0].strip().rpartition("://")[2].rpartition(":")
    return Dataset.on("kafka", host or port, port if host else 9092, topic)


def _of_json(text: str, who: str) -> Settings:
    try:
        content = json.loads(text)
    except ValueError:
        raise InvalidPipeline(f"{who}: the connection looks like JSON, and isn't") from None
    return {str(name): _text(value) for name, value in content.items()}


def _of_uri(text: str, who: str) -> Settings:
    parts = urlsplit(text)
    if parts.scheme != "kafka":
        raise InvalidPipeline(f"{who}: the connection is for {parts.scheme}, not for kafka")
    options = dict(parse_qsl(parts.query))
    nested = _of_json(options.pop(NESTED), who) if NESTED in options else {}
    login, _, host = parts.netloc.rpartition("@")
    settings = ({BOOTSTRAP: unquote(host)} if host else {}) | options | nested
    return settings | _of_login(login, settings, who)


def _of_login(login: str, settings: Settings, who: str) -> Settings:
    """Return the settings of a login. Raises `InvalidPipeline` if `settings` wouldn't use it: it must not be
    ignored."""
    username, _, password = (unquote(part) for part in login.partition(":"))
    if not (username or password):
        return {}
    login_settings = {USERNAME: username, PASSWORD: password}
    protocol = settings.get("security.protocol", "").upper()
    mechanism = next((settings[name] for name in _MECHANISMS if name in settings), "")
    if not (username and password):
        fault = f"has a {'login' if username else 'password'} alone: give both"
    elif protocol not in ("SASL_SSL", "SASL_PLAINTEXT"):
        fault = f"has a login, and security.protocol={protocol or 'PLAINTEXT'} asks for none: set SASL_SSL in its extra"
    elif mechanism not in _BY_PASSWORD:
        fits = ", ".join(_BY_PASSWORD)
        fault = f"has a login, and sasl.mechanism={mechanism or 'GSSAPI'} takes none: set one of {fits} in its extra"
    elif any(settings.get(name, value) != value for name, value in login_settings.items()):
        fault = f"has one login, and another one in {USERNAME} and {PASSWORD} of its extra: remove one of them"
    else:
        return login_settings
    raise InvalidPipeline(f"{who}: the connection {fault}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


#: Milliseconds. librdkafka treats the first connection as a reconnection; short pauses find a returning broker soon.
_SOON = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 1000}


def client(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a client. librdkafka's log is off: its messages are in the errors."""
    return {**_SOON, **settings, "log_level": 0, "socket.keepalive.enable": "true"}


def connect(client: Any, topic: str, seconds: float) -> None:
    """Wait until a producer or consumer knows brokers; otherwise it would look for them again after half a second. Asks
    twice: the first answer may arrive before the connection that the next request uses is open."""
    for _ in range(2):
        client.list_topics(topic, timeout=seconds)


def code_of(error: KafkaException) -> KafkaError:
    """Return the error in an exception of confluent-kafka."""
    code: KafkaError = error.args[0]
    return code


@dataclass(frozen=True)
class Asker:
    """The name of the source or sink in messages, and the errors to raise if the cluster doesn't answer or refuses."""

    name: str
    unavailable: type[LockstepError] = SinkUnavailable
    refused: type[LockstepError] = PreflightRefused

    @contextmanager
    def naming(self, doing: str) -> Iterator[None]:
        """Turn the client's errors into `unavailable` or `refused`."""
        try:
            yield
        except KafkaException as error:
            code = code_of(error)
            text = f"{self.name}: {doing}: {code.name()}: {code.str()}"
            if code.code() in _NOT_ALLOWED:
                raise self.refused(f"{text}; grant it, or use another login") from None
            raise self.unavailable(text) from None
        except TimeoutError:
            raise self.unavailable(f"{self.name}: {doing}: no answer") from None


_NOT_ALLOWED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError._AUTHENTICATION,
    }
)


#: Seconds to wait for the answer to a login; without one the next request reports the reason.
_KNOCKING = 10.0
_NO_LOGIN = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})


class _LoginRefused(Exception):
    """The brokers refused the login."""


def entered_settings(dsn: str, who: Asker) -> Settings:
    """Return the settings like `settings_of`, after trying the login if `dsn` is a `Login`: a client whose login is
    refused would retry silently. Raises `InvalidPipeline`, and the asker's `unavailable` if the login, also when read
    again, is refused."""

    def tried(text: str) -> Settings:
        settings = settings_of(text, who.name)
        if isinstance(dsn, Login) and USERNAME in settings:
            _knock(settings)
        return settings

    try:
        return entered(dsn, tried, lambda error: isinstance(error, _LoginRefused))
    except _LoginRefused as refused:
        raise who.unavailable(f"{who.name}: the brokers refuse the login of its connection: {refused}") from None


def _knock(settings: Settings) -> None:
    refusals: list[KafkaError] = []
    admin = AdminClient({**client(settings), "error_cb": refusals.append})
    answer = admin.describe_cluster(request_timeout=_KNOCKING)
    deadline = time.monotonic() + _KNOCKING
    while not answer.done() and time.monotonic() < deadline:
        admin.poll(0.01)
        for refusal in refusals:
            if refusal.code() in _NO_LOGIN:
                raise _LoginRefused(refusal.str())


_SAME = frozenset({"bootstrap.servers", "security.protocol", "sasl.kerberos.service.name", "client.rack"})
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
#: librdkafka settings that are translated separately or don't concern address and login.
_ELSEWHERE = frozenset({"sasl.username", "sasl.password", *_MECHANISMS, "ssl.ca.location", "client.id"})
#: Exactly one login module: Java's error would quote parts of anything else.
_NOTHING = "a.B required;"
_JAAS = re.compile(
    r"""\s*[\w.$]+\s+(?:required|requisite|sufficient|optional)(?:\s+[\w.]+=(?:"(?:[^"\\]|\\.)*"|[^\s";]+))*\s*;\s*"""
)
JAVA = "java."  #: prefix of settings for Java clients only


def java_settings(settings: Mapping[str, str], who: str) -> dict[str, str]:
    """Return the settings for a Java client. Settings without counterpart can be given with the prefix `java.`. Raises
    `InvalidPipeline`."""
    own = {name.removeprefix(JAVA): value for name, value in settings.items() if name.startswith(JAVA)}
    shared = {name: value for name, value in settings.items() if not name.startswith(JAVA)}
    unknown = sorted(name for name in shared.keys() - _SAME - _ELSEWHERE if name.startswith(("ssl.", "sasl.")))
    if unknown and not own:
        raise InvalidPipeline(
            f"{who}: Spark's client is written in Java and knows no {', '.join(unknown)}: give the connection what it "
            f"needs instead, with the prefix {JAVA!r}"
        )
    translated = {name: value for name, value in shared.items() if name in _SAME} | _sasl(shared)
    if authority := shared.get("ssl.ca.location"):
        translated |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
    if not _JAAS.fullmatch(own.get("sasl.jaas.config", _NOTHING)):
        raise InvalidPipeline(
            f"{who}: {JAVA}sasl.jaas.config is not of the form '<login module> required <name>=\"<value>\" …;'"
        )
    return translated | own


def _sasl(settings: Mapping[str, str]) -> dict[str, str]:
    mechanism = next((settings[name] for name in _MECHANISMS if name in settings), None)
    if mechanism is None:
        return {}
    sasl = {"sasl.mechanism": mechanism}
    if mechanism in _LOGIN_MODULES and "sasl.username" in settings:
        login = (
            f'username="{_quoted(settings["sasl.username"])}" password="{_quoted(settings.get("sasl.password", ""))}"'
        )
        sasl["sasl.jaas.config"] = f"{_LOGIN_MODULES[mechanism]} required {login};"
    return sasl


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


_SETTING = "spark.sql.redaction.string.regex"
#: Matches an option, key and value, in the text of a request.
_OPTION = r'(?is)"kafka\.[^"]*(?:jaas|password|secret|token|\.key)[^"]*"\s*value:\s*"(?:[^"\\]|\\.)*"'
_TELLING = ("jaas", "password", "secret", "token", ".key")


def hide_login(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Make Spark redact the login in this session's plans, if the settings have one."""
    if not any(part in name.lower() for name in settings for part in _TELLING):
        return
    own = spark.conf.get(_SETTING, "") or ""
    if _OPTION not in own:
        spark.conf.set(_SETTING, f"{own}|{_OPTION}" if own else _OPTION)
