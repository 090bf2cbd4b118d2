"""Files that are there whole or not at all: results where the user wants them, and the user's cache.

In: bytes and a path, or a name that says everything that the bytes depend on. Out: the same bytes, later. Invariant: a
reader never meets half a file; a cache that cannot be read or written is no error, what it held is made again.
LUTHIER_CACHE_DIR names the cache's folder, or is ``off``.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CACHE = "LUTHIER_CACHE_DIR"
_DIGEST_BYTES = 32


def cache_folder() -> Path | None:
    """LUTHIER_CACHE_DIR, or luthier below the user's cache folder; None if it is off, or there is no home."""
    chosen = os.environ.get(CACHE)
    if chosen:
        return None if chosen == "off" else Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "luthier"
    except RuntimeError:
        return None


def write_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Replace ``path`` by ``data``, or by pieces of it, in one step; raises OSError and leaves what was there.

    What is no file but a device or a pipe is written to, not replaced.
    """
    pieces = (data,) if isinstance(data, bytes) else data
    if path.exists() and not path.is_file():
        with path.open("wb") as out:
            out.writelines(pieces)
        return
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:200]}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            out.writelines(pieces)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)  # there only if something failed


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@dataclass(frozen=True, slots=True)
class Shelf:
    """One kind of cached things. Above ``limit_bytes`` those that were not used for longest are thrown away."""

    name: str
    limit_bytes: int

    def read(self, key: str) -> bytes | None:
        """What is kept under a key, if it is there and whole."""
        path = self._path(key)
        if path is None:
            return None
        try:
            kept = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        digest, data = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
        return data if hashlib.sha256(data).digest() == digest else None

    def write(self, key: str, data: bytes) -> None:
        path = self._path(key)
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, hashlib.sha256(data).digest() + data)
            if key.startswith("0"):  # one in sixteen looks after the size
                _trim(path.parent.parent, self.limit_bytes)
        except OSError:
            return

    def _path(self, key: str) -> Path | None:
        folder = cache_folder()
        return None if folder is None else folder / self.name / key[:2] / key[2:]


def cache_key(*parts: str | bytes) -> str:
    """A name for what depends on ``parts`` and nothing else."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _trim(folder: Path, limit_bytes: int) -> None:
    entries = [(entry.stat(), entry) for entry in folder.glob("*/*")]
    excess = sum(stat.st_size for stat, _ in entries) - limit_bytes
    for stat, entry in sorted(entries, key=lambda entry: entry[0].st_mtime):
        if excess <= 0:
            return
        entry.unlink(missing_ok=True)
        excess -= stat.st_size
