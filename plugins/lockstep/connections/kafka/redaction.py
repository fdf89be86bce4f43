"""A login of Kafka's must not be seen where Spark shows plans: in its web pages, event logs and job descriptions.

Classic plans don't show a source's options. Spark Connect shows the text of its requests, with the options in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTING = "spark.sql.redaction.string.regex"
#: An option in the text of a request, key and value.
_OPTION = r'(?is)"kafka\.[^"]*(?:jaas|password|secret|token|\.key)[^"]*"\s*value:\s*"(?:[^"\\]|\\.)*"'
_TELLING = ("jaas", "password", "secret", "token", ".key")


def hide_login(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Have this session's plans shown without what opens doors, if the settings have any such thing."""
    if not any(part in name.lower() for name in settings for part in _TELLING):
        return
    own = spark.conf.get(_SETTING, "") or ""
    if _OPTION not in own:
        spark.conf.set(_SETTING, f"{own}|{_OPTION}" if own else _OPTION)
