"""Compiled hooks on disk, by content.

In: a text that decides what the code is. Out: code bytes, or None. Invariant: an entry is written whole or not at
all, and a cache that cannot be used is no error: the hook is compiled again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

FORMAT = "1"  # of entries and of what makes their keys


def key(*parts: str) -> str:
    """Name of the entry that depends on ``parts``."""
    return hashlib.sha256("\0".join((FORMAT, *parts)).encode()).hexdigest()


def folder() -> Path:
    """LUTHIER_CACHE_DIR, or luthier below the user's cache folder."""
    chosen = os.environ.get("LUTHIER_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "luthier"


def read(name: str) -> bytes | None:
    """The code under a key, if it is there and whole."""
    try:
        data = _path(name).read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    digest, code = data[:32], data[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def write(name: str, code: bytes) -> None:
    """Keep code under a key."""
    try:
        path = _path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(draft, path)
    except (OSError, RuntimeError):
        return


def _path(name: str) -> Path:
    return folder() / "hooks" / name[:2] / name[2:]
