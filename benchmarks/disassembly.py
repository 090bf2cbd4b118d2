"""`luthier disasm` beside `llvm-objdump -d`, in pairs: processor time of whole commands, written to /dev/null.

In: LUTHIER_ROCM_LIBRARIES, of which objects of one target are read until they have 8 MB of code. Out: a line of text.
"""

from __future__ import annotations

import mmap
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from luthier_py.binary.loader import load, unbundle

NAME, CODE_BYTES, PAIRS = "gfx90a:xnack-", 8_000_000, 3


def objects() -> Iterator[bytes]:
    """The largest first."""
    for path in filter(None, os.environ.get("LUTHIER_ROCM_LIBRARIES", "").split(":")):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = [member for member in unbundle(data, path) if member.target_name == NAME]
            yield from (member.data for member in sorted(found, key=lambda member: -member.size))


def write_objects(folder: Path) -> list[Path]:
    paths: list[Path] = []
    code_bytes = 0
    for data in objects():
        if code_bytes < CODE_BYTES:
            code_bytes += sum(map(len, load(data).text_ranges))
            paths.append(folder / f"{len(paths)}.co")
            paths[-1].write_bytes(data)
    if code_bytes < CODE_BYTES:
        print(f"LUTHIER_ROCM_LIBRARIES has {code_bytes} bytes of code for {NAME}, {CODE_BYTES} are needed")
        sys.exit(0)
    return paths


def bundle(paths: list[Path]) -> bytes:
    """All of them as one fat binary for each, as a library has them."""
    triple = f"hipv4-amdgcn-amd-amdhsa--{NAME}".encode()
    whole = b"\x7fELF".ljust(4096, b"\0")
    for data in (path.read_bytes() for path in paths):
        head = b"__CLANG_OFFLOAD_BUNDLE__" + (1).to_bytes(8, "little")
        head += b"".join(number.to_bytes(8, "little") for number in (4096, len(data), len(triple))) + triple
        whole += head.ljust(4096, b"\0") + data + bytes(-len(data) % 4096)
    return whole


def seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    objdump = shutil.which("llvm-objdump-22")
    if objdump is None:
        print("left out: needs llvm-objdump-22")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_objects(folder)
        (folder / "all.so").write_bytes(bundle(paths))
        ours = [str(Path(sys.executable).with_name("luthier")), "disasm", str(folder / "all.so")]
        pairs = [(seconds(ours), sum(seconds([objdump, "-d", str(path)]) for path in paths)) for _ in range(PAIRS)]
    ratios = [a / b for a, b in pairs]
    print(f"{len(paths)} objects: luthier disasm {statistics.median(a for a, _ in pairs):.1f} s, "
          f"llvm-objdump -d {statistics.median(b for _, b in pairs):.1f} s, ratio of pairs "
          f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})")


if __name__ == "__main__":
    main()
