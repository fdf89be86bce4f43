"""docker-compose.yaml as Compose reads it: variables filled in, and what the image's recipe says for each service."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).resolve().parents[2] / "docker-compose.yaml"
_VARIABLE = re.compile(r"\$\$|\$\{(\w+):\?\}")


@dataclass(frozen=True)
class Service:
    """`needs`: by service, the condition that it is waited for. `health`: the command that asks how it is."""

    name: str
    image: str
    command: list[str]
    environment: dict[str, str]
    volumes: list[str]
    needs: dict[str, str]
    health: list[str]


@dataclass(frozen=True)
class Recipe:
    """Of the image that is built: what it sets, and what it copies of the checkout into its working folder."""

    environment: dict[str, str]
    copied: list[str]


def services(variables: Mapping[str, str]) -> dict[str, Service]:
    """All of the file. KeyError: it wants a variable that isn't given."""
    return {name: _service(name, _filled(one, variables)) for name, one in _file()["services"].items()}


def recipe() -> Recipe:
    """What the Dockerfile within the file says, as far as it is needed to run the services without an image."""
    lines = _filled(_file()["x-image"]["build"]["dockerfile_inline"], {}).splitlines()
    steps = [line.split() for line in lines if line and not line.startswith(" ")]
    settings = [word.split("=", 1) for keyword, *words in steps if keyword == "ENV" for word in words]
    return Recipe(dict(settings), [name for keyword, *words in steps if keyword == "COPY" for name in words[:-1]])


def _file() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def _service(name: str, described: Mapping[str, Any]) -> Service:
    kind, *test = described.get("healthcheck", {}).get("test", ["NONE"])
    return Service(
        name,
        described["image"],
        described.get("command", []),
        {variable: str(value) for variable, value in described.get("environment", {}).items()},
        described.get("volumes", []),
        {other: one["condition"] for other, one in described.get("depends_on", {}).items()},
        ["sh", "-c", *test] if kind == "CMD-SHELL" else test,
    )


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: variables[found[1]] if found[1] else "$", value)
    if isinstance(value, list):
        return [_filled(one, variables) for one in value]
    if isinstance(value, dict):
        return {key: _filled(one, variables) for key, one in value.items()}
    return value
