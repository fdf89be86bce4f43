"""URIs of objects, with our scheme's name and with Hadoop's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from lockstep.errors import StoreRefused

SCHEMES = ("s3", "gs", "az")
_SECRET = re.compile("secret|password|token|key|sas", re.IGNORECASE)
#: `endpoint_override` and `scheme` as pyarrow.fs calls them.
_OPTIONS = {"s3": {"region", "endpoint_override", "scheme"}, "gs": set(), "az": {"account"}}
#: What old URIs may say to pyarrow.fs, and nothing hangs on here.
_PASSED_OVER = {"allow_bucket_creation", "allow_bucket_deletion", "background_writes", "allow_delayed_open"}


@dataclass(frozen=True)
class Address:
    """`container`: S3's and Google's bucket, Azure's container. `prefix`: '' or names with '/' between them.

    `options`: how the URI wants the store to be reached; free of secrets.
    """

    scheme: str
    container: str
    prefix: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, uri: str) -> Address:
        """Raises `StoreRefused` for what isn't understood, and for a secret, which is not repeated."""
        try:
            parts = urlsplit(uri)
        except ValueError:  # its text may repeat a piece of a login
            raise StoreRefused("the URI of the object store can't be understood; expected s3://bucket/prefix") from None
        if "@" in uri:
            raise StoreRefused("the URI of the object store carries a login: leave it out, see docs/object-stores.md")
        if parts.scheme not in SCHEMES or not parts.netloc or parts.fragment:
            place = f"{parts.scheme}://{parts.netloc}{parts.path}"  # the rest may be a secret
            raise StoreRefused(f"{place!r} is no object store; expected {'://bucket/…, '.join(SCHEMES)}://bucket/…")
        return cls(parts.scheme, parts.netloc, unquote(parts.path).strip("/"), _options(parts.scheme, parts.query))

    @property
    def hadoop(self) -> str:
        """The URI for Hadoop's file systems and Spark: not percent-encoded, without options."""
        if self.scheme == "az":
            place = f"abfss://{self.container}@{self.options.get('account', '')}.dfs.core.windows.net"
        else:
            place = f"{'s3a' if self.scheme == 's3' else self.scheme}://{self.container}"
        return f"{place}/{self.prefix}" if self.prefix else place

    @property
    def query(self) -> str:
        """The options, as in a URI."""
        return urlencode(self.options, safe=":/")

    @property
    def uri(self) -> str:
        """The URI that `of` takes, without options."""
        place = f"{self.scheme}://{self.container}"
        return f"{place}/{quote(self.prefix, safe='/=:')}" if self.prefix else place


def is_object_store(uri: str) -> bool:
    """True if `Address.of` understands the URI's scheme."""
    return uri.partition("://")[0] in SCHEMES and "://" in uri


def from_hadoop(uri: str, options: str) -> str:
    """Our URI for what `Address.hadoop` made; `options`: a query that goes with it."""
    scheme, _, path = uri.partition("://")
    if scheme == "abfss":
        place, _, rest = path.partition("/")
        path = f"{place.partition('@')[0]}/{rest}"
    name = {"s3a": "s3", "abfss": "az"}.get(scheme, scheme)
    return f"{name}://{quote(path, safe='/=:@')}{f'?{options}' if options else ''}"


def _options(scheme: str, query: str) -> Mapping[str, str]:
    """Options are passed on to the Spark job in its arguments."""
    pairs = parse_qsl(query, keep_blank_values=True)
    for name, value in pairs:
        if _SECRET.search(name) or "@" in unquote(value):
            raise StoreRefused(
                f"the URI of the object store carries a secret in {name!r}: leave it out, see docs/object-stores.md"
            )
        if name == "scheme" and value not in ("http", "https"):
            raise StoreRefused(
                "scheme= of the object store's URI has to be http or https: options come last, after '?'"
            )
        if name not in _OPTIONS[scheme] | _PASSED_OVER:
            allowed = ", ".join(sorted(_OPTIONS[scheme])) or "none"
            raise StoreRefused(f"{name!r} is no option of {scheme}://; it has {allowed}")
    return dict(pairs)
