"""Building C libraries: by the system's compiler at first use, cached by content.

In: sources, and texts that are generated. Out: a folder with libraries.
Invariant: a folder appears whole or not at all, and its name says everything that it was made of: for what is generated
that is what it is generated from. One that was damaged since is made again.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from luthier_py.base.errors import LuthierError, Unsupported
from luthier_py.base.storage import CACHE, cache_folder, cache_key, do_without, own_folder, tell_making, trust

CHECKSUM = "checksum"
"""In a cached folder: of all else in it."""
STRICT = "LUTHIER_WERROR"
"""Set where a compiler's warning is an error: in CI, not with the compiler of a user's machine."""
SPLITTING = set(" :;$\t\n")
"""What no name has in lists of the loader."""
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-pthread", "-fvisibility=hidden")
LINK = ("-shared", "-pthread", "-Wl,-z,defs", "-Wl,-Bsymbolic-functions", "-ldl")


def compile_sources(folder: Path, sources: Iterable[Path], *extra: str) -> list[Path]:
    """Objects in ``folder``; ``extra``: further arguments for the compiler."""
    jobs = {object_file(folder, source): compilation(folder, source, *extra) for source in sources}
    compile_each(jobs)
    return list(jobs)


def object_file(folder: Path, source: Path, mark: str = "") -> Path:
    """Sources of several rooms, which may have the same name, and generated ones have their objects in one folder."""
    return folder / f"{source.parent.name}-{source.stem}{mark}.o"


def compilation(folder: Path, source: Path, *extra: str) -> list[str]:
    """The compiler's arguments but for the output; headers are found beside the source and in ``folder``."""
    warnings = ("-Wall", "-Wextra", "-Werror") if os.environ.get(STRICT) else ("-w",)
    return [*FLAGS, *warnings, f"-I{folder}", *extra, "-c", str(source)]


def compile_each(jobs: Mapping[Path, Sequence[str]]) -> None:
    """Arguments by their output."""
    from concurrent.futures import ThreadPoolExecutor  # who finds the libraries in the cache does without

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run_compiler, ([*arguments, "-o", str(output)] for output, arguments in jobs.items())))


def link_library(output: Path, objects: list[Path], *extra: str) -> None:
    """Link objects to a shared library; ``extra``: further arguments for the compiler. Raises as `run_compiler`."""
    run_compiler([*map(str, objects), *extra, *LINK, "-o", str(output)])


def build(
    kind: str, made_of: Iterable[str | bytes], texts: Callable[[], Mapping[str, str]],
    compile_all: Callable[[Path], None]
) -> Path:
    """The cached folder, made by ``compile_all(folder)`` if it is not there. ``texts``: files that are to be in it
    then. ``made_of``: contents of all that it is made from."""
    key = hashlib.sha256()
    for part in made_of:
        key.update((part.encode() if isinstance(part, str) else part) + b"\0")
    name, cache = f"{kind}-{key.hexdigest()[:24]}", cache_folder()
    if cache is not None and (kept := _find_cached(cache / "native" / name)):
        return _ensure_loadable_path(kept)
    made = _own_folder(name) / name
    if not made.is_dir():
        tell_making("compiling C libraries for this computer")
        made.parent.mkdir(mode=0o700, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{kind}-", dir=made.parent))
        for file, text in texts().items():
            (draft / file).write_text(text)
        compile_all(draft)
        for compiled in draft.glob("*.o"):
            compiled.unlink()
        draft.rename(made)
    return _ensure_loadable_path(made if cache is None else _keep(made, cache / "native" / name))


def loads_from(path: Path) -> bool:
    """Whether lists of the loader can have it."""
    return not set(str(path)) & SPLITTING


def _ensure_loadable_path(folder: Path) -> Path:
    """By a name that the loader takes for one: it splits lists at spaces, colons and semicolons, and $ begins a token
    (ld.so(8)). Where the folder has another one, a link to it in a folder for temporary files."""
    folder = folder.absolute()
    if loads_from(folder):
        return folder
    places = (Path(place) for place in (tempfile.gettempdir(), "/tmp", "/var/tmp") if os.access(place, os.W_OK))
    place = next(filter(loads_from, places), None)
    if place is None:
        raise Unsupported(
            f"the loader finds nothing in {folder}, whose name has a space, a colon, a semicolon or $, and there is no "
            f"folder for temporary files with a link to it; {CACHE} names another cache"
        )
    links = place / f"luthier-links-{os.geteuid()}"
    link = links / cache_key(str(folder))[:24]
    own_folder(links)
    if not link.is_symlink() or os.readlink(link) != str(folder):
        draft = links / f".{link.name}-{os.getpid()}"
        draft.unlink(missing_ok=True)
        draft.symlink_to(folder)
        draft.replace(link)
    return link


def _find_cached(folder: Path) -> Path | None:
    """The cached folder, if it exists, is complete, and no other user could have written it."""
    try:
        return folder if _whole(folder) else None
    except PermissionError as error:
        do_without(error)
        return None
    except OSError:
        return None


def _whole(folder: Path) -> bool:
    """Raises OSError: PermissionError if another user could have written the files."""
    for path in (folder.parents[1], folder.parent, folder, *folder.iterdir()):
        trust(path, path.stat())
    try:
        return (folder / CHECKSUM).read_bytes() == _checksum(folder).encode()
    except (FileNotFoundError, IsADirectoryError):
        return False


def _checksum(folder: Path) -> str:
    """Of the names and contents of its files, and of where links lead."""
    files = {path.name: path for path in folder.iterdir() if path.name != CHECKSUM}
    contents = (os.readlink(path) if path.is_symlink() else path.read_bytes() for _, path in sorted(files.items()))
    return cache_key(*sorted(files), *contents)


def _keep(made: Path, folder: Path) -> Path:
    """Where it is from now on: in the cache, or where it was made."""
    draft = folder.parent / f".{folder.name}-{os.getpid()}"
    try:
        own_folder(folder.parents[1])
        own_folder(folder.parent)
        shutil.copytree(made, draft, symlinks=True)
        (draft / CHECKSUM).write_text(_checksum(draft))
        for path in draft.iterdir():
            if not path.is_symlink():
                path.chmod(0o700)
        if folder.exists() and not _whole(folder):  # a disk was full, or lost power
            shutil.rmtree(folder)
        draft.rename(folder)
    except OSError as error:
        if _find_cached(folder):  # another process has just built the same
            return folder
        do_without(error)
        return made
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    shutil.rmtree(made.parent, ignore_errors=True)  # now: who is killed leaves nothing behind
    return folder


def run_compiler(arguments: list[str]) -> None:
    """Run the C compiler ($CC, or cc). Unsupported where it is not installed; LuthierError, with its first line about
    an error, where it fails."""
    compiler = os.environ.get("CC") or "cc"
    if shutil.which(compiler) is None:
        raise Unsupported(
            f"the C compiler `{compiler}` is not installed; install one (Debian and Ubuntu: apt install gcc libc6-dev)"
        )
    done = subprocess.run([compiler, *arguments], capture_output=True, text=True)
    if done.returncode:
        message = next(
            (line for word in ("undefined", "error") for line in done.stderr.splitlines() if word in line),
            done.stderr.strip() or "no message"
        )
        raise LuthierError(f"{compiler} failed on the sources of the C libraries: {message}")


@cache
def _own_folder(name: str) -> Path:
    """Of one build, for as long as this process lives; gone before that where a cache keeps it."""
    folder = Path(tempfile.mkdtemp(prefix="luthier-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
