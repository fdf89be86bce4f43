"""The code of pages, taken from them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "writing-a-sink.md"


def source_of(name: str) -> str:
    """The code block of docs/writing-a-sink.md that starts with `# <name>.py`."""
    return block_of(PAGE, name)


def block_of(page: Path, name: str) -> str:
    """The code block of a page that starts with `# <name>.py`."""
    [source] = re.findall(rf"```python\n(# {name}\.py\n.*?)```", page.read_text(), re.S)
    return str(source)


def module_of(name: str) -> ModuleType:
    """That code as a module, which can be imported from now on."""
    if name not in sys.modules:
        module = ModuleType(name)
        sys.modules[name] = module
        exec(compile(source_of(name), f"{name}.py", "exec"), module.__dict__)
    return sys.modules[name]
