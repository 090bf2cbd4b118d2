"""Building the C libraries: by the system's compiler at first use, kept by content in the user's cache.

In: the sources beside this file, the tables, this Python's path. Out: a folder with libamdhip64.so.5, .6 and .7.
Invariant: a folder appears whole or not at all, and its name says everything that it was made of.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from luthier_py.errors import LuthierError, Unsupported
from luthier_py.runtime.hip import protocol, table

ABI_MAJORS = (5, 6, 7)
"""Of libamdhip64.so: programs built for ROCm 5, 6 and 7."""

HERE = Path(__file__).parent
PACKAGE_ROOT = HERE.parent.parent.parent
FLAGS = (
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O2",
    "-fPIC",
    "-shared",
    "-pthread",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror",
)
LINK = ("-Wl,-z,defs", "-Wl,-Bsymbolic-functions", "-ldl")


def runtime_folder() -> Path:
    """A folder for LD_LIBRARY_PATH; raises Unsupported when there is no C compiler."""
    rows = table.functions()
    generated = {
        "errors.h": table.errors_header(),
        "functions.h": table.declarations(rows),
        "protocol.h": protocol.header(),
        "missing.c": table.stubs(rows),
        "hip.map": table.version_script(rows),
    }
    names = (
        "device",
        "graphs",
        "launches",
        "memory",
        "modules",
        "operations",
        "properties",
        "registry",
        "streams",
        "wire",
    )

    def compile_all(folder: Path) -> None:
        sources = [str(HERE / f"{name}.c") for name in names]

        def one(major: int) -> None:
            library = f"libamdhip64.so.{major}"
            run_compiler(
                [
                    *FLAGS,
                    f"-DABI_MAJOR={major}",
                    f"-I{folder}",
                    f"-I{HERE}",
                    *definitions(),
                    *sources,
                    str(folder / "missing.c"),
                    f"-Wl,-soname,{library}",
                    f"-Wl,--version-script={folder / 'hip.map'}",
                    *table.aliases(rows),
                    *LINK,
                    "-o",
                    str(folder / library),
                ]
            )

        with ThreadPoolExecutor() as pool:
            list(pool.map(one, ABI_MAJORS))
        (folder / "libamdhip64.so").symlink_to(f"libamdhip64.so.{ABI_MAJORS[-1]}")

    return build("hip", generated, [*sorted(HERE.glob("*.[ch]"))], compile_all)


def definitions() -> list[str]:
    """The Python that runs workers, and where it finds this package."""
    return [f'-DLUTHIER_PYTHON="{sys.executable}"', f'-DLUTHIER_ROOT="{PACKAGE_ROOT}"']


def build(kind: str, generated: dict[str, str], sources: list[Path], compile_all: object) -> Path:
    """The cached folder for these texts, made by ``compile_all(folder)`` if it is not there."""
    assert callable(compile_all)
    digest = hashlib.sha256()
    parts = [
        *generated.values(),
        *(path.read_text() for path in sources),
        *FLAGS,
        *LINK,
        *definitions(),
        Path(__file__).read_text(),
    ]
    for part in parts:
        digest.update(part.encode() + b"\0")
    final = cache_folder() / "native" / f"{kind}-{digest.hexdigest()[:24]}"
    if final.is_dir():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{kind}-", dir=final.parent))
    try:
        for name, text in generated.items():
            (draft / name).write_text(text)
        compile_all(draft)
        try:
            draft.rename(final)
        except OSError:
            if not final.is_dir():  # else another process has just built the same
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return final


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
        raise LuthierError(f"{compiler} failed on the HIP runtime's sources: {message}")


def cache_folder() -> Path:
    """LUTHIER_CACHE_DIR, or luthier below the user's cache folder."""
    chosen = os.environ.get("LUTHIER_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "luthier"
