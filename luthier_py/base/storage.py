"""Files that are there whole or not at all: results where the user wants them, the user's cache, and files to be read.

In: bytes and a path, or a name that says everything that the bytes depend on. Out: the same bytes, later. Invariant: a
reader never meets half a file, and never waits for what is no file; nothing is taken from the cache that another user
could have put there, root excepted; a cache that cannot be read or written is no error: that is said once, and what it
held is made again.
LUTHIER_CACHE_DIR names the cache's folder, or is ``off``.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass

CACHE = "LUTHIER_CACHE_DIR"
_TOLD = "LUTHIER_CACHE_TOLD"  # the folder of which something was said, by this process or the one that started it
_MAKING_TOLD = "LUTHIER_MAKING_TOLD"
_damaged: list[str] = []  # entries of which something was said
_DIGEST_BYTES = 32
_PRIVATE = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
          stat.S_IFSOCK: "a socket"}
_KERNEL_LINKS = "/proc/"  # a descriptor's link there may have any text, and leads to what is open
_MOST_LINKS = 40  # as Linux has it


class Unwritten(OSError):
    """A file that could not be written; one that is to be read and is not there is a FileNotFoundError."""


class NotRegular(OSError):
    """``strerror`` says what it is."""


def open_regular(path: Path, flags: int = 0) -> BinaryIO:
    """A regular file, to be read; NotRegular, at once, for a pipe or a device, which may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise NotRegular(errno.EINVAL, f"{_KINDS.get(kind, 'something else')}, no regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path, most_bytes: int, flags: int = 0) -> bytes:
    """The content of a small regular file; OSError for one that is larger."""
    with open_regular(path, flags) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes} bytes", str(path))
    return data


def cache_folder() -> Path | None:
    """LUTHIER_CACHE_DIR, or luthier below the user's cache folder; None if it is off, or there is no home."""
    chosen = os.environ.get(CACHE)
    if chosen:
        return None if chosen == "off" else Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "luthier"
    except RuntimeError:
        return None


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """luthier below the user's folder of data (XDG Base Directory Specification), for what is no cache."""
    home = Path(environment.get("HOME") or "~").expanduser()
    chosen = Path(environment.get("XDG_DATA_HOME", ""))
    return (chosen if chosen.is_absolute() else home / ".local" / "share") / "luthier"


def settle_cache() -> None:
    """Before a command starts processes: where the cache cannot be made, or trusted, a folder below that of
    temporary files serves this one and all of them, which is said."""
    folder = cache_folder()
    if folder is None:
        return
    try:
        own_folder(folder)
    except OSError as error:
        other = Path(tempfile.gettempdir()) / f"luthier-{os.geteuid()}"
        try:
            own_folder(other)
        except OSError:
            do_without(error)
            return
        os.environ[CACHE] = str(other)
        _say(f"{other} serves as cache instead of {folder} ({_reason(error)}); {CACHE} names another, or is `off`")


def own_folder(folder: Path) -> None:
    """A folder of the cache, made for this user alone if it is not there; raises OSError if it is not to be trusted."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=_PRIVATE, exist_ok=True)
        folder.chmod(_PRIVATE)  # whatever the umask
    found = folder.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "it is no folder", str(folder))
    trust(folder, found)


def trust(path: Path, found: os.stat_result) -> None:
    """Raises PermissionError if another user could have written the file."""
    if found.st_uid not in (os.geteuid(), 0):
        raise PermissionError(errno.EPERM, f"it belongs to user {found.st_uid}", str(path))
    if found.st_mode & _OTHERS_WRITE:
        raise PermissionError(errno.EPERM, "others may write to it; remove it, or take that right away", str(path))


def do_without(error: OSError) -> None:
    """Say that the cache is of no use, once."""
    folder = str(cache_folder())
    if os.environ.get(_TOLD) != folder:
        os.environ[_TOLD] = folder
        place = f"{error.filename}: " if error.filename and str(error.filename) != folder else ""
        _say(f"working without the cache {folder} ({place}{_reason(error)}); {CACHE} names another, or is `off`")


def tell_making(what: str) -> None:
    """Say that something is made that takes a while, once for this process and those that it starts."""
    if not os.environ.get(_MAKING_TOLD):
        os.environ[_MAKING_TOLD] = "1"
        folder = cache_folder()
        _say(f"{what}, which takes a while; {f'kept in {folder}' if folder else f'kept nowhere, as {CACHE} is off'}")


def _say(words: str) -> None:
    with suppress(OSError, ValueError):
        print(f"luthier: {words}", file=sys.stderr, flush=True)


def _reason(error: OSError) -> str:
    """A folder that was not copied has a list of reasons: for each file its two names and one."""
    if isinstance(error, shutil.Error) and error.args and error.args[0]:
        return str(error.args[0][0][-1]).partition(": '")[0]
    return error.strerror or str(error)


def tell_damaged(what: str) -> None:
    """Say that an entry of the cache cannot be used and is made again, once."""
    if not _damaged:
        _damaged.append(what)
        _say(f"ignoring a damaged entry of the cache ({what})")


def check_folder(folder: Path, given: str) -> None:
    """Invalid where a folder cannot be made or written: who does long work finds out before. ``given``: the option."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not there.is_dir():
        raise Invalid(f"{given}: {there} is a file; give a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise Invalid(f"{given}: {there} cannot be written to; give another folder")


def check_file(file: Path, given: str, in_place: bool = False) -> None:
    """Invalid where ``write_file``, or who writes ``in_place``, will not be able to. ``given``: the option."""
    if file.is_dir():
        raise Invalid(f"{given}: {file} is a folder; give a file")
    if not file.parent.is_dir():
        raise Invalid(f"{given}: there is no folder {file.parent}")
    end = _end_of_links(file)
    if end is None or end.exists() and (in_place or not end.is_file()):
        place, needed = file, os.W_OK
    else:
        place, needed = end.parent, os.W_OK | os.X_OK
    if not os.access(place, needed):
        raise Invalid(f"{given}: {place} cannot be written to; give another file")


def write_file(path: Path, data: bytes | Iterable[bytes], private: bool = False) -> None:
    """Replace ``path`` by ``data``, or by pieces of it, in one step; raises OSError and leaves what was there.

    What is no file but a device, a pipe or a name of an open file (/dev/stdout) is written to, not replaced; a link
    stays, and the file that it leads to is replaced. ``private``: only this user can read it.
    """
    pieces = (data,) if isinstance(data, bytes) else data
    place = _end_of_links(path)
    if place is None or (place.exists() and not place.is_file()):
        with _about(path), path.open("wb") as out:
            out.writelines(pieces)
        return
    with _about(place.parent):
        handle, name = tempfile.mkstemp(prefix=f".{place.name[:200]}.", dir=place.parent)
    temporary = Path(name)
    try:
        with _about(place):
            with os.fdopen(handle, "wb") as out:
                out.writelines(pieces)
            if not private:
                temporary.chmod(0o666 & ~_umask())
            temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)  # there only if something failed


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """An error names the user's file, not the temporary one."""
    try:
        yield
    except OSError as error:
        raise Unwritten(error.errno, error.strerror, str(path)) from error


def _end_of_links(path: Path) -> Path | None:
    """The file that a name leads to; None where a link on the way is an open file's, which only the kernel follows."""
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(path.parent)
        if folder.startswith(_KERNEL_LINKS):
            return None
        if not path.is_symlink():
            return path
        path = Path(folder, os.readlink(path))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_written: dict[Path, int] = {}
"""Bytes written by folder of a shelf, since its size was last checked."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """One kind of cached things. Above ``limit_bytes`` those that were not used for longest are thrown away."""

    name: str
    limit_bytes: int

    def read(self, key: str) -> bytes | None:
        """What is stored under a key, if it exists and is complete."""
        path = self._path(key)
        if path is None:
            return None
        try:
            for folder in self._folders(path):
                trust(folder, folder.stat())
            with path.open("rb") as file:
                trust(path, os.fstat(file.fileno()))
                kept = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            do_without(error)
            return None
        with suppress(OSError):  # a cache that may only be read serves as well
            os.utime(path)
        digest, data = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
        if self._digest(key, data) != digest:
            tell_damaged(str(path))
            return None
        return data

    def write(self, key: str, data: bytes) -> None:
        """Put ``data`` under a key, and perhaps make room for it; without a usable cache it does nothing, which is said
        once."""
        path = self._path(key)
        if path is None:
            return
        try:
            for folder in self._folders(path):
                own_folder(folder)
            write_file(path, self._digest(key, data) + data, private=True)
        except OSError as error:
            do_without(error)
            return
        self._look_after_size(path.parents[1], key, len(data))

    def _look_after_size(self, folder: Path, key: str, size: int) -> None:
        """Once for so many bytes, whichever processes write them: each begins somewhere between two looks, as its first
        key has it."""
        span = max(self.limit_bytes // 16, 1)
        written = _written.get(folder, crc32(key.encode()) % span) + size
        if written >= span:
            written = 0
            with suppress(OSError):  # another process may be at it
                _trim(folder, self.limit_bytes)
        _written[folder] = written

    def _digest(self, key: str, data: bytes) -> bytes:
        """Of the name too: under another one it is something else."""
        return bytes.fromhex(cache_key(self.name, key, data))

    def _folders(self, path: Path) -> tuple[Path, ...]:
        """Of the cache, from the outermost on."""
        return path.parents[2], path.parents[1], path.parents[0]

    def _path(self, key: str) -> Path | None:
        folder = cache_folder()
        return None if folder is None else folder / self.name / key[:2] / key[2:]


def cache_key(*parts: str | bytes) -> str:
    """A name for what depends on ``parts`` and nothing else."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass") if isinstance(part, str) else part  # names of files are any bytes
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


_CONTENTS = Shelf("sources", 1 << 20)


@cache
def sources(*rooms: str) -> str:
    """A name for what is in these rooms' files, or in the whole package's: other sources make something else.

    The content is read once for files of these names, sizes and times: that is looked up with one ``stat`` of each.
    """
    package = os.path.dirname(os.path.dirname(__file__))
    files = sorted(_files(package, rooms) if rooms else _sources(package))
    key = cache_key(sys.version, *(f"{path} {found.st_size} {found.st_mtime_ns}" for path, found in files))
    if (kept := _CONTENTS.read(key)) is not None:
        return kept.decode()
    contents = (part for path, _ in files for part in (os.path.relpath(path, package), Path(path).read_bytes()))
    content = cache_key(sys.version, *contents)
    if all(os.stat(path).st_mtime_ns == found.st_mtime_ns for path, found in files):  # no file was changed meanwhile
        _CONTENTS.write(key, content.encode())
    return content


def _files(package: str, rooms: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """A room is a folder or a module of the package."""
    for room in rooms:
        folder = os.path.join(package, room)
        if os.path.isdir(folder):
            yield from _sources(folder)
        else:
            yield f"{folder}.py", os.stat(f"{folder}.py")


def _sources(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _sources(entry.path)
            elif entry.name.endswith((".py", ".bc", ".gz", ".json", ".hip", ".h")):
                yield entry.path, entry.stat()


def digest(path: str) -> str:
    """A digest of what is in a file, or in all files of a folder, and of where it is; without content where it is not
    there."""
    where, parts = os.path.abspath(path), list[bytes]()
    for file in sorted(Path(where).rglob("*")) if os.path.isdir(where) else (Path(where),):
        parts.append(os.fsencode(file))
        with suppress(OSError):
            parts.append(file.read_bytes())
            if file.suffix == ".py":  # Python takes what it has compiled while this is the same
                parts.append(str(int(file.stat().st_mtime)).encode())
    return cache_key(*parts)


def _trim(folder: Path, limit_bytes: int) -> None:
    entries = list(_entries(folder))
    excess = sum(found.st_size for found, _ in entries) - limit_bytes
    if excess <= 0:
        return
    for found, path in sorted(entries, key=lambda entry: entry[0].st_mtime):
        with suppress(FileNotFoundError):
            os.unlink(path)
        excess -= found.st_size
        if excess <= 0:
            return


def _entries(folder: Path) -> Iterator[tuple[os.stat_result, str]]:
    """Tens of thousands of them: os.scandir takes half of what pathlib does."""
    with os.scandir(folder) as inner:
        for each in inner:
            if each.is_dir():
                with os.scandir(each) as files:
                    yield from ((file.stat(), file.path) for file in files)
