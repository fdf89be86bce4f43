"""What Airflow lists about Lockstep as a provider: its name, and its types of Connections with the fields of their
forms. The plugin has an entry point of its own.

A type is defined here only if Airflow, with the extras of this package, has none that fits; existing ones
(`postgres`, `spark`, `spark_connect`, `http`, and other providers' `kafka`, `mysql` and `aws`) are used as they are.
`connections.py` reads the Connections.
"""

from __future__ import annotations

from typing import Any

from lockstep.distribution import DISTRIBUTION

_HOOKS = "lockstep.airflow.hooks"
_SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
_PROTOCOLS = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
_MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER"]


def get_provider_info() -> dict[str, Any]:
    """Called by Airflow through the package's entry point; the format is that of its provider_info.schema.json."""
    return {
        "package-name": DISTRIBUTION,
        "name": "Lockstep",
        "description": "Exactly-once output: a DAG run moves one epoch into all its sinks by two-phase commit.",
        "integrations": [{"integration-name": "Lockstep", "external-doc-url": "", "tags": ["software"]}],
        "hooks": [{"integration-name": "Lockstep", "python-modules": [_HOOKS]}],
        "connection-types": [
            _type(
                "lockstep_ledger",
                "Lockstep ledger",
                "LedgerHook",
                relabeling={"schema": "Database"},
                placeholders={"host": "the host of a PostgreSQL database of its own", "login": "lockstep"},
                fields={
                    "sslmode": _field("TLS", "verify-full checks the server's certificate and name", _SSL_MODES),
                    "sslrootcert": _field("CA certificate", "File on every machine that runs tasks"),
                },
            ),
            _type(
                "lockstep_staging",
                "Lockstep staging",
                "StagingHook",
                hidden=["port", "schema", "login", "password", "extra"],
                relabeling={"host": "Staging URI"},
                placeholders={"host": "s3://bucket/prefix, hdfs:///path or /mnt/staging"},
            ),
            _type(
                "lockstep_kafka",
                "Lockstep Kafka",
                "KafkaHook",
                hidden=["schema"],
                relabeling={"host": "Bootstrap servers", "login": "SASL login", "password": "SASL password"},
                placeholders={"host": "broker1:9092,broker2:9092, or one host with its port in the field Port"},
                fields={
                    "security.protocol": _field("Protocol", "SASL_SSL for a login over TLS", _PROTOCOLS),
                    "sasl.mechanism": _field("SASL mechanism", "Mechanism of the login", _MECHANISMS),
                    "ssl.ca.location": _field("CA certificate", "File on every machine that runs tasks"),
                },
            ),
            _type(
                "lockstep_mariadb",
                "Lockstep MariaDB",
                "MariaDbHook",
                relabeling={"schema": "Database"},
                fields={"ssl_ca": _field("CA certificate", "If set, the server's certificate and name are checked")},
            ),
            _type(
                "lockstep_s3",
                "Lockstep S3",
                "S3Hook",
                hidden=["host", "port", "schema"],
                relabeling={"login": "Access key", "password": "Secret key"},
                fields={
                    "region_name": _field("Region", "For example eu-central-1"),
                    "endpoint_url": _field("Endpoint", "For a store other than Amazon's: https://host:port"),
                },
            ),
        ],
    }


def _type(
    name: str,
    title: str,
    hook: str,
    *,
    hidden: list[str] | None = None,
    relabeling: dict[str, str] | None = None,
    placeholders: dict[str, str] | None = None,
    fields: dict[str, Any] | None = None,
) -> dict[str, Any]:
    behaviour = {"hidden-fields": hidden or [], "relabeling": relabeling or {}, "placeholders": placeholders or {}}
    return {
        "connection-type": name,
        "hook-name": title,
        "hook-class-name": f"{_HOOKS}.{hook}",
        "ui-field-behaviour": behaviour,
        **({"conn-fields": fields} if fields else {}),
    }


def _field(label: str, description: str, choices: list[str] | None = None) -> dict[str, Any]:
    """A text field of the Connection's extra."""
    schema: dict[str, Any] = {"enum": [None, *choices]} if choices else {}
    return {"label": label, "description": description, "schema": {"type": ["string", "null"], **schema}}
