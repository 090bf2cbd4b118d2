"""Compile the sample kernels: tests/data/*.hip -> *.co, and their SHA256SUMS.

In: the HIP sources beside this file and clang (``$CLANG``, or clang-22). Out: one gfx90a code
object for each source. Invariant: the same compiler gives the same bytes in any folder, so the
committed objects can be checked (``tests/unit/samples/test_samples.py`` does).

    python tests/data/build.py [FOLDER]      FOLDER: where to write, default beside the sources
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
COMPILER = "Debian clang version 22.1.8"
OPTIONS = (
    "-x hip --offload-arch=gfx90a --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 "
    "-mcode-object-version=5 -fuse-cuid=none"
).split()
LINES = ("reduce_padded", "reduce_strided", "transpose", "transpose_padded")  # with line tables, to show source lines
LINE_OPTIONS = ("-gline-tables-only", "-fdebug-compilation-dir=.")


def clang() -> str:
    return os.environ.get("CLANG", "clang-22")


def build(folder: Path) -> list[Path]:
    """Compile every source into ``folder``; the objects, by name."""
    objects = []
    for source in sorted(SOURCES.glob("*.hip")):
        target = folder / f"{source.stem}.co"
        options = [*OPTIONS, *(LINE_OPTIONS if source.stem in LINES else ())]
        subprocess.run([clang(), *options, source.name, "-o", str(target.resolve())], cwd=SOURCES, check=True)
        target.chmod(0o644)  # the linker makes it executable
        objects.append(target)
    return objects


def checksums(objects: list[Path]) -> str:
    """The lines of SHA256SUMS, in the format of sha256sum(1)."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in objects)


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else SOURCES
    (folder / "SHA256SUMS").write_text(checksums(build(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
