"""The sinks of docs/writing-a-sink.md, taken from the page."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "writing-a-sink.md"


def module_of(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The code block of the page that starts with `# <name>.py`, importable during the test."""
    [source] = re.findall(rf"```python\n(# {name}\.py\n.*?)```", PAGE.read_text(), re.S)
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module
