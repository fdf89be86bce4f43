"""The same connection for a client in Java, as Spark's Kafka source is one: librdkafka's settings by Java's names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lockstep.errors import InvalidPipeline

_SAME = frozenset({"bootstrap.servers", "security.protocol", "sasl.kerberos.service.name", "client.rack"})
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_MECHANISM = ("sasl.mechanism", "sasl.mechanisms")
#: Settings of librdkafka that are no matter of where the cluster is, or who asks.
_ELSEWHERE = frozenset({"sasl.username", "sasl.password", *_MECHANISM, "ssl.ca.location", "client.id"})
#: One login module: whatever else there stands, Java repeats a part of in its error.
_NOTHING = "a.B required;"
_JAAS = re.compile(
    r"""\s*[\w.$]+\s+(?:required|requisite|sufficient|optional)(?:\s+[\w.]+=(?:"(?:[^"\\]|\\.)*"|[^\s";]+))*\s*;\s*"""
)
JAVA = "java."  #: prefix of settings that are for Java's client alone


def java_settings(settings: Mapping[str, str], who: str) -> dict[str, str]:
    """Java's settings. What has no counterpart can be given with the prefix `java.`. Raises `InvalidPipeline`."""
    own = {name.removeprefix(JAVA): value for name, value in settings.items() if name.startswith(JAVA)}
    given = {name: value for name, value in settings.items() if not name.startswith(JAVA)}
    unknown = sorted(name for name in given.keys() - _SAME - _ELSEWHERE if name.startswith(("ssl.", "sasl.")))
    if unknown and not own:
        raise InvalidPipeline(
            f"{who}: Spark's client is written in Java and knows no {', '.join(unknown)}: give the connection what it "
            f"needs instead, with the prefix {JAVA!r}"
        )
    found = {name: value for name, value in given.items() if name in _SAME} | _sasl(given)
    if authority := given.get("ssl.ca.location"):
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
    if not _JAAS.fullmatch(own.get("sasl.jaas.config", _NOTHING)):
        raise InvalidPipeline(
            f"{who}: {JAVA}sasl.jaas.config is not of the form '<login module> required <name>=\"<value>\" …;'"
        )
    return found | own


def _sasl(given: Mapping[str, str]) -> dict[str, str]:
    mechanism = next((given[name] for name in _MECHANISM if name in given), None)
    if mechanism is None:
        return {}
    found = {"sasl.mechanism": mechanism}
    if mechanism in _LOGIN_MODULES and "sasl.username" in given:
        login = f'username="{_quoted(given["sasl.username"])}" password="{_quoted(given.get("sasl.password", ""))}"'
        found["sasl.jaas.config"] = f"{_LOGIN_MODULES[mechanism]} required {login};"
    return found


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
