"""Tokens in place of passwords, for Connections that ask for one as Airflow's own hooks have it: RDS, Redshift, Azure;
and keys of a role, for those to an object store of Amazon's.

The hook of the Connection's provider gets the token. Lockstep needs none of these providers, and names what is missing.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from airflow.sdk import Connection

from lockstep.errors import LoginUnavailable, NotConfigured

SECONDS = 60.0  #: a token is used for, in which many connections may be opened; it lives for minutes

#: {type of Connection: its hook, the name of whose argument is a Connection's id, and the package that brings it}
_HOOKS = {
    "postgres": ("airflow.providers.postgres.hooks.postgres", "PostgresHook", "apache-airflow-providers-postgres"),
    "mysql": ("airflow.providers.mysql.hooks.mysql", "MySqlHook", "apache-airflow-providers-mysql"),
}
_AMAZON = ("airflow.providers.amazon.aws.hooks.base_aws", "apache-airflow-providers-amazon")
_AZURE = ("airflow.providers.microsoft.azure.hooks.base_azure", "apache-airflow-providers-microsoft-azure")
#: Of a Connection's extra, for these hooks alone.
EXTRAS = frozenset(
    {"iam", "aws_conn_id", "azure_conn_id", "redshift", "redshift-serverless", "cluster-identifier", "workgroup-name"}
)


#: Of an aws Connection's extra, what its keys are got by.
_ROLES = ("role_arn", "profile_name")
#: Of an aws Connection's extra, what says where the store is.
_STORE = ("region_name", "endpoint_url")


def asks_for_keys(found: Connection) -> bool:
    """Whether an aws Connection names a role or a profile, or has no keys of its own: its hook takes the machine's."""
    extra = found.extra_dejson
    own = found.login or extra.get("aws_access_key_id")
    return found.conn_type == "aws" and (not own or any(extra.get(name) for name in _ROLES))


def with_keys(found: Connection) -> Connection:
    """The same with the keys that its provider's hook gets, good for minutes, and only where the store is beside them.

    Raises `NotConfigured` where the provider is missing, `LoginUnavailable` where no keys are had.
    """
    extra = found.extra_dejson
    hook = _provided(*_AMAZON, found, "keys of a role").AwsBaseHook
    try:
        got = hook(found.conn_id, client_type="s3").get_credentials(extra.get("region_name"))
    except Exception as error:  # of Amazon's client: any
        raise _unavailable(found, "no keys were", error) from None
    from airflow.sdk.log import mask_secret

    for secret in filter(None, (got.secret_key, got.token)):
        mask_secret(secret)
    kept = {name: extra[name] for name in _STORE if extra.get(name)}
    kept |= {"aws_session_token": got.token} if got.token else {}
    return changed(found, login=got.access_key, password=got.secret_key, extra=json.dumps(kept) if kept else None)


def asks_for_token(found: Connection) -> bool:
    """By `iam`, as its hook reads it; `azure_conn_id` alone says so too, where there is no password."""
    if found.conn_type not in _HOOKS:
        return False
    extra = found.extra_dejson
    asked = str(extra.get("iam") or "").lower() not in ("", "false", "0", "no")
    return asked or bool(extra.get("azure_conn_id") and not found.password)


def with_token(found: Connection) -> Connection:
    """The same with a token for its password, and with the login and the port that go with it.

    Raises `NotConfigured` where a provider is missing, `LoginUnavailable` where no token is had.
    """
    module, name, package = _HOOKS[str(found.conn_type)]
    azure = bool(found.extra_dejson.get("azure_conn_id"))
    if azure and found.conn_type != "postgres":
        raise NotConfigured(f"Connection {found.conn_id!r} has azure_conn_id, which only Postgres takes tokens by")
    hook = getattr(_provided(module, package, found), name)
    _provided(*(_AZURE if azure else _AMAZON), found)
    try:
        got = hook(**{hook.conn_name_attr: found.conn_id}).get_iam_token(found)
    except Exception as error:  # of a cloud's own client: any
        raise _unavailable(found, "no token was", error) from None
    from airflow.sdk.log import mask_secret

    login, token, port = got if len(got) == 3 else (found.login, *got)
    mask_secret(token)
    return changed(found, login=login, password=token, port=port)


def without_extras(found: Connection) -> Connection:
    """The same without what its extra says to a hook that gets tokens."""
    extra = found.extra_dejson
    if found.conn_type not in _HOOKS or not EXTRAS & extra.keys():
        return found
    kept = {name: value for name, value in extra.items() if name not in EXTRAS}
    return changed(found, extra=json.dumps(kept) if kept else None)


def changed(found: Connection, **fields: Any) -> Connection:
    """The same with other values of these fields."""
    names = ("conn_id", "conn_type", "host", "schema", "login", "password", "port", "extra")
    return Connection(**{**{name: getattr(found, name) for name in names}, **fields})


def _provided(module: str, package: str, found: Connection, what: str = "a token in place of a password") -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise NotConfigured(
            f"Connection {found.conn_id!r} asks for {what}, and the package that gets it is "
            f"missing ({error.name or module}): pip install {package}"
        ) from error


def _unavailable(found: Connection, what: str, error: Exception) -> LoginUnavailable:
    told = (str(error).strip().splitlines() or [""])[0]
    text = f"Connection {found.conn_id!r}: {what} had: {type(error).__name__}: {told}"
    return LoginUnavailable(text.replace(found.password, "***") if found.password else text)
