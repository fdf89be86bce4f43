"""The browser of those tests that look at pages as a person does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

EXECUTABLE = os.environ.get("LOCKSTEP_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
_QUIETLY = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"]
_QUIETLY += ["--disable-component-update", *(["--no-sandbox"] if os.getuid() == 0 else [])]

needs_chromium = pytest.mark.skipif(
    EXECUTABLE is None, reason="no Chromium: Debian's package chromium, or LOCKSTEP_CHROMIUM=/its/path"
)


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=_QUIETLY)
        yield browser
        browser.close()
