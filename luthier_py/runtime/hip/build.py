"""Building the C libraries: by the system's compiler at first use, kept by content in the user's cache.

In: the sources beside this file, the tables, this Python's path. Out: a folder with libamdhip64.so.5, .6 and .7.
Invariant: a folder appears whole or not at all, and its name says everything that it was made of; one that was damaged
since is made again.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from luthier_py.errors import LuthierError, Unsupported
from luthier_py.runtime.hip import protocol, table
from luthier_py.storage import cache_folder, cache_key, do_without, own_folder, trust

ABI_MAJORS = (5, 6, 7)
"""Of libamdhip64.so: programs built for ROCm 5, 6 and 7."""

TOOL_LIBRARY = "libluthier_tool.so"
CHECKSUM = "checksum"
"""In a cached folder: of all else in it."""
HERE = Path(__file__).parent
PACKAGE_ROOT = HERE.parent.parent.parent
STRICT = "LUTHIER_WERROR"
"""Set where a compiler's warning is an error: in CI, not with the compiler of whoever installs this."""
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-pthread", "-fvisibility=hidden")
LINK = ("-shared", "-pthread", "-Wl,-z,defs", "-Wl,-Bsymbolic-functions", "-ldl")
ABI = "ABI_MAJOR"  # in sources that are compiled for each; all others are compiled once
RUNTIME = tuple(
    "announce capture device executables graphs hostcalls image launches memory modules nodes operations pinned pools "
    "properties registry streams wire".split()
)
TOOL = ("attached", "copies", "counted", "graphed", "image", "interpose", "redirect", "wire")
COMMON_TOOL = HERE.parent / "tool"  # what tools have in common at all levels: every C file there


def runtime_folder() -> Path:
    """A folder for LD_LIBRARY_PATH; raises Unsupported when there is no C compiler."""
    rows = table.functions()
    texts = {**headers(rows), "missing.c": table.stubs(rows), "hip.map": table.version_script(rows)}

    def compile_all(folder: Path) -> None:
        sources = [*source_paths(RUNTIME), folder / "missing.c"]
        objects = compile_sources(folder, sources, ABI_MAJORS)
        for major in ABI_MAJORS:
            name = f"libamdhip64.so.{major}"
            script = f"-Wl,-soname,{name}", f"-Wl,--version-script={folder / 'hip.map'}"
            link_library(folder / name, objects[major], *script, *table.aliases(rows))
        (folder / "libamdhip64.so").symlink_to(f"libamdhip64.so.{ABI_MAJORS[-1]}")
        (folder / "lib").symlink_to(".")  # so that the folder can be a ROCM_PATH

    return build("hip", texts, compile_all)


def tool_library(tool: str | None = None, options: str = "") -> Path:
    """A library for LD_PRELOAD: with a tool's name and options in it, or one that takes them from the environment."""
    rows = table.functions()
    baked = baked_in(tool, options)
    own = [row for row in rows if row.alias_of == "hipExtModuleLaunchKernel"]

    def compile_all(folder: Path) -> None:
        sources = [*source_paths(TOOL), *sorted(COMMON_TOOL.glob("*.c"))]
        objects = compile_sources(folder, sources, ABI_MAJORS[-1:], *baked)
        link_library(folder / TOOL_LIBRARY, objects[ABI_MAJORS[-1]], *table.aliases(tuple(own)))

    return build("tool", {**headers(rows), "settings": repr(baked)}, compile_all) / TOOL_LIBRARY


def baked_in(tool: str | None, options: str) -> list[str]:
    return [f"-DLUTHIER_TOOL={_quoted(tool)}", f"-DLUTHIER_TOOL_OPTIONS={_quoted(options)}"] if tool else []


def headers(rows: tuple[table.Function, ...]) -> dict[str, str]:
    return {"errors.h": table.errors_header(), "functions.h": table.declarations(rows), "protocol.h": protocol.header()}


def source_paths(names: tuple[str, ...]) -> list[Path]:
    return [HERE / f"{name}.c" for name in names]


def compile_sources(folder: Path, sources: list[Path], majors: tuple[int, ...], *extra: str) -> dict[int, list[Path]]:
    """Objects for each of ``majors``, which share those of sources that are the same for all."""
    warnings = ("-Wall", "-Wextra", "-Werror") if os.environ.get(STRICT) else ("-w",)
    flags = (*FLAGS, *warnings, f"-I{folder}", f"-I{HERE}", f"-I{COMMON_TOOL}", *definitions(), *extra)
    objects: dict[int, list[Path]] = {major: [] for major in majors}
    work: dict[Path, list[str]] = {}
    for source in sources:
        differs = ABI in source.read_text()
        for major in majors:
            output = folder / f"{source.stem}{f'-{major}' if differs else ''}.o"
            work[output] = [*flags, *([f"-D{ABI}={major}"] if differs else []), "-c", str(source), "-o", str(output)]
            objects[major].append(output)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run_compiler, work.values()))
    return objects


def link_library(output: Path, objects: list[Path], *extra: str) -> None:
    run_compiler([*map(str, objects), *extra, *LINK, "-o", str(output)])


def _quoted(text: str) -> str:
    """A C string literal; anything unusual as an octal escape."""
    plain = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._-/=:")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode()) + '"'


def definitions() -> list[str]:
    """The Python that runs workers, and where it finds this package."""
    return [f'-DLUTHIER_PYTHON="{sys.executable}"', f'-DLUTHIER_ROOT="{PACKAGE_ROOT}"']


def build(kind: str, texts: dict[str, str], compile_all: Callable[[Path], None]) -> Path:
    """The cached folder for these texts and our sources, made by ``compile_all(folder)`` if it is not there."""
    digest = hashlib.sha256()
    sources = [path.read_text() for path in (Path(__file__), *sorted(HERE.parent.glob("*/*.[ch]")))]
    for part in (*texts.values(), *sources, *definitions()):
        digest.update(part.encode() + b"\0")
    name, cache = f"{kind}-{digest.hexdigest()[:24]}", cache_folder()
    if cache is not None and (kept := _kept(cache / "native" / name)):
        return kept
    made = _own_folder() / name
    if not made.is_dir():
        draft = Path(tempfile.mkdtemp(prefix=f".{kind}-", dir=made.parent))
        for file, text in texts.items():
            (draft / file).write_text(text)
        compile_all(draft)
        for compiled in draft.glob("*.o"):
            compiled.unlink()
        draft.rename(made)
    return made if cache is None else _keep(made, cache / "native" / name)


def _kept(folder: Path) -> Path | None:
    """What is cached, if it is there and whole, and nobody else could have made it."""
    try:
        return folder if _whole(folder) else None
    except PermissionError as error:
        do_without(error)
        return None
    except OSError:
        return None


def _whole(folder: Path) -> bool:
    """Raises OSError: PermissionError where somebody else could have made what is there."""
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
        if _kept(folder):  # another process has just built the same
            return folder
        do_without(error)
        return made
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    shutil.rmtree(made, ignore_errors=True)
    return folder


def run_compiler(arguments: list[str]) -> None:
    compiler = os.environ.get("CC") or "cc"
    if shutil.which(compiler) is None:
        raise Unsupported(
            f"the C compiler `{compiler}` is not installed; install one (Debian and Ubuntu: apt install gcc libc6-dev)"
        )
    done = subprocess.run([compiler, *arguments], capture_output=True, text=True)
    if done.returncode:
        message = next(
            (line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip() or "no message"
        )
        raise LuthierError(f"{compiler} failed on the sources of the C libraries: {message}")


@cache
def _own_folder() -> Path:
    """For as long as this process lives."""
    folder = Path(tempfile.mkdtemp(prefix="luthier-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
