"""The client of a store: obstore's, with a login from a Connection or from where its makers look for one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from lockstep.connections.login import Login as ChangingLogin
from lockstep.connections.object_store.address import Address
from lockstep.distribution import naming_extra
from lockstep.errors import StoreRefused

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client
    from obstore.store import S3Credential

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
#: A store that doesn't answer is the task's to try again later: it must not hold a task for the minutes of the default.
_RETRIES: Any = {"max_retries": 8, "retry_timeout": timedelta(seconds=60)}
LARGE = timedelta(minutes=10)  #: for one request that moves a large object on a slow line
#: After that a login that changes is asked for again, by obstore five minutes before: a role's keys live longer.
_LIFE = timedelta(minutes=10)
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")


@dataclass(frozen=True)
class S3Login:
    """Login of an S3 store: `aws://<key>:<secret>@/?region_name=…&endpoint_url=…`."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    region: str | None = None
    endpoint: str | None = None
    changing: ChangingLogin | None = field(default=None, repr=False)  #: whom to ask for the keys that are good now

    @classmethod
    def of(cls, dsn: str) -> S3Login:
        """Parse a Connection of type aws in Airflow's URI form. Raises `StoreRefused`, without quoting it."""
        try:
            parts = urlsplit(dsn)
            extra: dict[str, str] = dict(parse_qsl(parts.query))
            extra |= json.loads(extra.pop("__extra__", "{}"))
        except ValueError:
            raise StoreRefused("the Connection of the object store can't be understood: it is to be aws://…") from None
        key = unquote(parts.username or "") or extra.get("aws_access_key_id", "")
        secret = unquote(parts.password or "") or extra.get("aws_secret_access_key", "")
        if parts.scheme not in ("aws", "s3") or not key or not secret:
            raise StoreRefused(
                "the Connection of the object store has to be of type aws, with an access key for its login and the "
                "secret for its password; without one, leave the connection out: the environment is asked then"
            )
        return cls(
            key,
            secret,
            extra.get("aws_session_token"),
            extra.get("region_name"),
            extra.get("endpoint_url") or None,
            dsn if isinstance(dsn, ChangingLogin) else None,
        )

    def credential(self) -> S3Credential:
        """The keys that are good now, as obstore takes them."""
        if self.changing is None:
            return _credential(self, None)
        return _credential(S3Login.of(self.changing.now()[0]), datetime.now(UTC) + _LIFE)


def _credential(login: S3Login, expires_at: datetime | None) -> S3Credential:
    return {
        "access_key_id": login.access_key,
        "secret_access_key": login.secret_key,
        "token": login.token,
        "expires_at": expires_at,
    }


def open_client(address: Address, login: S3Login | None = None, timeout: timedelta | None = None) -> Client:
    """A client of the container, with paths relative to the address. Nothing is asked of the store yet.

    `timeout`: of one request; None: obstore's half a minute.

    Raises `StoreRefused` for what it can't be made of, `PackageMissing` without the extra.
    """
    with naming_extra(f"{address.scheme}://"):
        from obstore.exceptions import BaseError
        from obstore.store import AzureStore, GCSStore
    prefix = address.prefix or None
    options: Any = {"timeout": timeout} if timeout else {}
    try:
        match address.scheme:
            case "s3":
                return _s3_client(address, login, endpoint_of(address, login), options)
            case "gs":
                return GCSStore(address.container, prefix=prefix, client_options=options, retry_config=_RETRIES)
            case _:
                account = address.options.get("account")
                config: Any = {"account_name": account} if account else None
                return AzureStore(
                    address.container, prefix=prefix, config=config, client_options=options, retry_config=_RETRIES
                )
    except (BaseError, ValueError) as error:
        raise StoreRefused(
            f"{address.uri} can't be opened: {type(error).__name__}: see docs/object-stores.md"
        ) from error


def endpoint_of(address: Address, login: S3Login | None = None) -> str | None:
    """The S3 endpoint of the address, by the URI, the login or the environment, in this order; None: Amazon's."""
    if override := address.options.get("endpoint_override"):
        return override if "://" in override else f"{address.options.get('scheme', 'https')}://{override}"
    if login and login.endpoint:
        return login.endpoint
    return next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)


def region_of(address: Address, login: S3Login | None = None) -> str:
    """The region, by the URI, the login or the environment, in this order; it isn't looked up."""
    region = _region(address, login) or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return region or "us-east-1"


def open_mark(address: Address, login: S3Login | None, folder: str) -> Client:
    """A client whose object '' is Hadoop's marker object of `folder`: its key ends with a slash, which obstore's paths
    can't."""
    endpoint = endpoint_of(address, login)
    if endpoint is None:
        endpoint = f"https://s3.{region_of(address, login)}.amazonaws.com"
    key = "/".join(filter(None, (address.container, address.prefix, folder)))
    place = f"{endpoint.rstrip('/')}/{quote(key, safe='/-_.~')}"
    whole = Address(address.scheme, address.container, "", address.options)
    return _s3_client(whole, login, place, {}, virtual_hosted_style_request=True, disable_bulk_delete=True)


def _s3_client(address: Address, login: S3Login | None, endpoint: str | None, options: Any, **config: Any) -> Client:
    from obstore.store import S3Store

    if endpoint:
        config |= {"endpoint": endpoint, "aws_endpoint_url_s3": endpoint}
    if region := _region(address, login):
        config["region"] = region
    return S3Store(
        address.container,
        prefix=address.prefix or None,
        config=config,  # type: ignore[arg-type] # built by name
        client_options={**options, "allow_http": bool(endpoint and endpoint.startswith("http://"))},  # type: ignore[arg-type]
        retry_config=_RETRIES,
        credential_provider=login.credential if login else _profile(os.environ),
    )


def _region(address: Address, login: S3Login | None) -> str | None:
    return address.options.get("region") or (login.region if login else None)


def goes_by_profile(environment: Mapping[str, str]) -> bool:
    """True if the login comes from AWS_PROFILE; keys in the environment take precedence."""
    return bool(environment.get("AWS_PROFILE")) and not any(environment.get(name) for name in _KEYS)


def _profile(environment: Mapping[str, str]) -> Any:
    """Provider of the keys of AWS_PROFILE, which obstore doesn't read; None: obstore's own search."""
    if not goes_by_profile(environment):
        return None
    if find_spec("boto3") is None:
        raise StoreRefused("AWS_PROFILE is set, and only boto3 reads profiles: pip install boto3, or set the keys")
    from obstore.auth.boto3 import Boto3CredentialProvider

    return Boto3CredentialProvider()
