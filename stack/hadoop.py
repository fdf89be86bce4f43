"""What Hadoop's servers of one node have in common: their settings, their jars, how their Java is called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from stack.jars import Jars, spark_jars
from stack.java import find_java

#: of the Hadoop that pyspark ships
VERSION = "3.5.0"
#: one jar brings every server
SERVERS = Jars("hdfs", alone=(f"org.apache.hadoop:hadoop-client-minicluster:{VERSION}",), target="hdfs")
#: Of pyspark's jars, those that the servers need beside the ones that are fetched.
_FROM_SPARK = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "log4j-", "jcl-over-slf4j")
_LOGGING = (
    "rootLogger.level=WARN\nrootLogger.appenderRef.out.ref=out\n"
    "appender.out.type=Console\nappender.out.name=out\n"
    "appender.out.layout.type=PatternLayout\nappender.out.layout.pattern=%d %p %c{1}: %m%n\n"
)


def write_settings(conf: Path, sites: Mapping[str, Mapping[str, str | int]]) -> None:
    """Make the folder `conf`: `{"core": …}` is core-site.xml."""
    conf.mkdir(parents=True, exist_ok=True)
    for name, properties in sites.items():
        (conf / f"{name}-site.xml").write_text(_site(properties))
    (conf / "log4j2.properties").write_text(_LOGGING)


def java(main: str, folder: Path, jars: Iterable[Path] = ()) -> list[str]:
    """The command for a server, or a tool, with the settings in `folder`/conf. Raises `StackError`."""
    classpath = [folder / "conf", *SERVERS.paths(), *jars, *spark_jars(*_FROM_SPARK)]
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dhadoop.log.dir={folder}"]
    return [str(find_java()), *options, "-cp", ":".join(map(str, classpath)), main]


def _site(properties: Mapping[str, str | int]) -> str:
    lines = [
        f"<property><name>{escape(name)}</name><value>{escape(str(value))}</value></property>"
        for name, value in properties.items()
    ]
    return "\n".join(["<?xml version='1.0'?>", "<configuration>", *lines, "</configuration>", ""])
