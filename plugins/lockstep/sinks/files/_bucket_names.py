"""How values become folder names that Hive, Spark and pyarrow read as partitions, and which names are refused.

The characters that are escaped are Hive's and Spark's (`FileUtils`, `ExternalCatalogUtils`): %XX, as in a URI.
"""

from __future__ import annotations

from urllib.parse import unquote

NULL = "__HIVE_DEFAULT_PARTITION__"  #: stands for a null, as in Hive
_MOST_BYTES = 1024  #: of a bucket's name
_MOST_BYTES_OF_A_FOLDER = 255
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f" + "".join(map(chr, range(32))))


def folder_of(key: str, text: str | None) -> str:
    """The folder `key=text`. ValueError if it couldn't be told from another one: an empty text, or that of a null."""
    if text == "" or text == NULL:
        raise ValueError(f"column {key!r} holds the text {text!r}, which readers of folder names take for a null")
    return f"{key}={NULL if text is None else escaped(text)}"


def escaped(text: str) -> str:
    """`text` as it can stand in a folder's name."""
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


def text_of(folder: str) -> str | None:
    """The text behind `folder_of`."""
    value = folder.partition("=")[2]
    return None if value == NULL else unquote(value)


def needs_escaping(text: str) -> bool:
    return not _ESCAPED.isdisjoint(text)


def require_bucket(bucket: str) -> str:
    """Return `bucket` if it can be a path below the target; ValueError says why it can't."""
    if not bucket:
        raise ValueError("the bucket '' has no name")
    if len(bucket.encode()) > _MOST_BYTES:
        raise ValueError(f"the bucket {bucket[:60]!r}… has {len(bucket.encode())} bytes, the most are {_MOST_BYTES}")
    for folder in bucket.split("/"):
        if problem := _problem(folder):
            raise ValueError(f"the bucket {bucket!r} {problem}")
    return bucket


def _problem(folder: str) -> str | None:
    if not folder:
        return "is absolute, ends with a slash, or has an empty folder"
    if folder[0] in "._":
        return f"has a folder {folder!r}: readers skip names with '.' or '_' in front"
    if any(ord(char) < 32 or ord(char) == 127 for char in folder):
        return "has a control character"
    if len(folder.encode()) > _MOST_BYTES_OF_A_FOLDER:
        return f"has a folder of {len(folder.encode())} bytes, the most are {_MOST_BYTES_OF_A_FOLDER}"
    return None
