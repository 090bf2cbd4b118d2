"""How fast our instruction set reads code beside llvm-objdump, in processor time of one core.

In: LUTHIER_ROCM_LIBRARIES, whose gfx90a code is read, a million instructions of it; without it the sample kernels, over
and over. Out: a section of isa.md.
"""

from __future__ import annotations

import itertools
import mmap
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from luthier_py.binary.loader import CodeObject, load, unbundle
from luthier_py.isa import InstructionSet, instruction_set, target
from luthier_py.isa.by_target import InstructionSet as Fresh
from luthier_py.samples import SAMPLES

NAME = "gfx90a"
MILLION = 1_000_000
LOADED = ("gfx90a", "gfx1030", "gfx1100", "gfx1201", "gfx1250")
LOADS = "from luthier_py.isa import instruction_set, target; import sys, time; t = time.process_time(); " \
    "instruction_set(target(sys.argv[1])).decode(bytes(4) + bytes(24)); print(time.process_time() - t)"
HEAD = """
## Speed

{what}.

Processor time of one core, best of several runs, all in one go; `llvm-objdump -d` writes to /dev/null. "Decode, one at
a time" gives an instruction with structured operands for each place; what it has met before it remembers.

| what | thousand instructions a second | beside llvm-objdump |
|---|---|---|"""


def functions(obj: CodeObject) -> bytes:
    return b"".join(bytes(obj.read(symbol.address, symbol.size)) for symbol in obj.symbols
                    if symbol.type.name == "FUNC" and symbol.size)


def objects() -> Iterator[CodeObject]:
    for path in filter(None, os.environ.get("LUTHIER_ROCM_LIBRARIES", "").split(":")):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield from (load(member.data) for member in unbundle(data, path) if NAME in member.triple)


def code_to_read(isa: InstructionSet) -> tuple[bytes, str]:
    """At least a million instructions, and what they are."""
    pieces, instructions = [], 0
    for obj in objects():
        if instructions < MILLION:
            pieces.append(functions(obj))
            instructions += len(isa.scan(pieces[-1]))
    if instructions >= MILLION:
        names = " and ".join(map(os.path.basename, os.environ["LUTHIER_ROCM_LIBRARIES"].split(":")))
        return b"".join(pieces), f"{NAME} code of {names}"
    code = b"".join(functions(load(sample.path.read_bytes())) for sample in SAMPLES)
    return code * -(-MILLION // len(isa.scan(code))), f"The sample kernels of {NAME}, over and over"


def seconds(runs: int, measured: Callable[[], object]) -> float:
    """The least processor time, that of child processes included."""
    times = []
    for _ in range(runs):
        start = _used()
        measured()
        times.append(_used() - start)
    return min(times)


def _used() -> float:
    child = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + child.ru_utime + child.ru_stime


def objdump_seconds(llvm_mc: str, objdump: str, code: bytes) -> float:
    with tempfile.TemporaryDirectory() as folder:
        binary, source, obj = (Path(folder) / name for name in ("code.bin", "code.s", "code.o"))
        binary.write_bytes(code)
        source.write_text(f'.incbin "{binary}"\n')
        subprocess.run([llvm_mc, "-triple=amdgcn-amd-amdhsa", f"-mcpu={NAME}", "-filetype=obj", str(source), "-o",
                        str(obj)], check=True)
        return seconds(3, lambda: subprocess.run([objdump, "-d", str(obj)], stdout=subprocess.DEVNULL, check=True))


def decode_all(code: bytes, offsets: list[int], isa: InstructionSet | None = None) -> InstructionSet:
    """Every instruction, one after the other; by a decoder that has met none of them if no ``isa`` is given."""
    isa = isa or Fresh(target(NAME), 64)
    for offset in offsets:
        isa.decode(code, offset)
    return isa


def of_distinct(llvm_mc: str, objdump: str, isa: InstructionSet, words: list[bytes]) -> list[tuple[str, float, float]]:
    """The same for instructions of which no two are equal; objdump and scan, which remember none, get many copies."""
    once, copies = b"".join(words), -(-MILLION // len(words))
    places = list(itertools.accumulate(map(len, words), initial=0))[:-1]
    base = copies * len(words) / objdump_seconds(llvm_mc, objdump, once * copies)
    scanned = copies * len(words) / seconds(3, lambda: isa.scan(once * copies))
    decoded = len(words) / seconds(3, lambda: decode_all(once, places))
    return [("llvm-objdump -d, each distinct instruction", base, base),
            ("scan, each distinct instruction", scanned, base),
            ("decode, each distinct instruction once, none met before", decoded, base)]


def speed(llvm_mc: str, objdump: str) -> str:
    isa = instruction_set(target(NAME))
    code, what = code_to_read(isa)
    scan = isa.scan(code)
    count, offsets = len(scan), scan.offsets.tolist()
    base = count / objdump_seconds(llvm_mc, objdump, code)
    rows = [
        ("llvm-objdump -d", base, base),
        ("scan, all fields", count / seconds(5, lambda: isa.scan(code)), base),
        ("decode, one at a time, nothing met before", count / seconds(3, lambda: decode_all(code, offsets)), base),
    ]
    again = decode_all(code, offsets)
    rows.append(("decode, one at a time, the same code again",
                 count / seconds(3, lambda: decode_all(code, offsets, again)), base))
    insts = [isa.decode(code, offset) for offset in offsets[:100_000]]
    rows.append(("text, one at a time", len(insts) / seconds(3, lambda: [isa.text(inst) for inst in insts]), base))
    distinct = sorted({code[offset:offset + size] for offset, size in zip(offsets, scan.sizes.tolist(), strict=True)})
    rows += of_distinct(llvm_mc, objdump, isa, distinct)
    lines = "\n".join(f"| {name} | {rate / 1e3:.0f} | {rate / beside:.1f} |" for name, rate, beside in rows)
    loads = {name: min(float(subprocess.run([sys.executable, "-c", LOADS, name], capture_output=True, text=True,
                                            check=True).stdout) for _ in range(9)) for name in LOADED}
    times = ", ".join(f"{name} {1e3 * used:.0f} ms" for name, used in loads.items())
    head = HEAD.format(what=f"{what}: {count} instructions, {len(distinct)} distinct")
    return f"{head}\n{lines}\n\nTables load in: {times}."


if __name__ == "__main__":
    print(speed(*(shutil.which(name) or name for name in ("llvm-mc-22", "llvm-objdump-22"))))
