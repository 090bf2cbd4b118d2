"""How far our instruction set agrees with LLVM 22's, target by target, and how fast it decodes beside llvm-objdump.

``isa.py`` takes a part of every target and prints the tables; ``isa.py --all`` takes two random words for each of the
65536 values of the opcode half-word and four for every row, and writes benchmarks/isa.md. Needs llvm-mc-22 and
llvm-objdump-22.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "differential"))

from isa_agreement import Agreement, Assembled, agreement, assembled, words_of_opcodes, words_of_rows  # noqa: E402

from luthier_py.isa import Target, instruction_set, target, targets  # noqa: E402
from luthier_py.isa.table import load_table  # noqa: E402
from luthier_py.loader import load  # noqa: E402
from luthier_py.samples import SAMPLES  # noqa: E402

LLVM_MC, LLVM_OBJDUMP = (shutil.which(name) or name for name in ("llvm-mc-22", "llvm-objdump-22"))
LOADS = "from luthier_py.isa import instruction_set, target; import sys, time; t = time.perf_counter(); " \
    "instruction_set(target(sys.argv[1])).decode(bytes(4) + bytes(24)); print(time.perf_counter() - t)"
HEAD = """# The instruction set against LLVM 22.1.8

Written by `benchmarks/isa.py --all`. Words: random operands of every row, and random words for every value of the
opcode half-word. Percentages are of what both accept (length, mnemonic, operands and full text, and whether encoding
the fields decodes to the same again), of all words (validity), and of the lines that LLVM's assembler takes
(assembled: the same bytes). Differences that have a reason are counted below, not as agreement or disagreement:
"explained" is their share of all words. Of targets that share one table the first has every opcode, the others a part.
"""
TABLE = "| target | wave | words | length | mnemonic | text | encoded again | validity | assembled | explained " \
    "| differ |\n" \
    "|---|---|---|---|---|---|---|---|---|---|---|"


def first_of_its_kind(row: Target) -> bool:
    """Whether no target before it has the same rows."""
    return next(other for other in targets() if rows_of(other) == rows_of(row)) is row


@cache
def rows_of(row: Target) -> frozenset[str]:
    return frozenset(op.record for op in load_table(row.name, row.wave_sizes[0]).rows)


def measure(row: Target, wave_size: int, everything: bool) -> tuple[Agreement, Assembled]:
    isa = instruction_set(row, wave_size)
    everything = everything and first_of_its_kind(row)
    words = words_of_rows(isa, 11, 4 if everything else 1, 1 if everything else 8)
    lines = words_of_rows(isa, 12, 1, 1 if everything else 8)
    first = wave_size == row.wave_sizes[0]
    words += list(words_of_opcodes(13, 2 if everything and first else 1, 1 if everything and first else 16))
    return agreement(LLVM_MC, row.name, wave_size, words), assembled(LLVM_MC, row.name, wave_size, lines)


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f}"


def line(row: Target, wave_size: int, found: Agreement, lines: Assembled) -> str:
    explained = sum(found.refusals.values()) + sum(found.soft.values()) + sum(found.defects.values())
    invalid = sum(text.startswith(("LLVM refuses", "we refuse")) for text in found.differences)
    compared = found.both_accept
    parts = [percent(part, compared) for part in (found.length, found.mnemonic, found.text, found.encoded)]
    taken = lines.texts - lines.refused - sum(lines.defects.values())
    return f"| {row.name} | {wave_size} | {found.words} | {' | '.join(parts)} | " \
        f"{percent(found.words - invalid, found.words)} | {percent(lines.equal, taken)} | " \
        f"{percent(explained, found.words)} | {len(found.differences) + len(lines.differences)} |"


def reasons(title: str, counts: Counter[str]) -> str:
    rows = "\n".join(f"| {reason} | {count} |" for reason, count in counts.most_common())
    return f"\n## {title}\n\n| reason | words |\n|---|---|\n{rows}\n"


def table(everything: bool) -> str:
    output = [HEAD, TABLE]
    refusals: Counter[str] = Counter()
    soft: Counter[str] = Counter()
    defects: Counter[str] = Counter()
    different: list[str] = []
    total = 0
    for row in targets():
        for wave_size in row.wave_sizes:
            found, lines = measure(row, wave_size, everything)
            output.append(line(row, wave_size, found, lines))
            print(output[-1], flush=True)
            refusals, soft = refusals + found.refusals, soft + found.soft
            defects += found.defects + lines.defects
            different += [f"{row.name}: {text}" for text in found.differences + lines.differences]
            total += found.words
    output.append(f"\n{total} words in all.")
    output.append(reasons("LLVM's disassembler accepts, we refuse", refusals))
    output.append(reasons("LLVM calls it a soft failure, we accept", soft))
    output.append(reasons("LLVM prints or assembles it wrongly", defects))
    if different:
        output.append("\n## Differences\n\n" + "\n".join(f"* `{text}`" for text in different[:200]))
    return "\n".join(output)


def sample_code(instructions: int) -> bytes:
    """Compiled code, repeated until it has so many instructions."""
    code = b""
    for sample in SAMPLES:
        obj = load(sample.path.read_bytes())
        code += b"".join(bytes(obj.read(text.start, len(text))) for text in obj.text_ranges)
    once = len(instruction_set(target("gfx90a")).scan(code))
    return code * -(-instructions // once)


def best(runs: int, measured: object) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        measured()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return min(times)


def objdump_seconds(code: bytes) -> float:
    with tempfile.TemporaryDirectory() as folder:
        binary, source, obj = (Path(folder) / name for name in ("code.bin", "code.s", "code.o"))
        binary.write_bytes(code)
        source.write_text(f'.incbin "{binary}"\n')
        subprocess.run([LLVM_MC, "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-filetype=obj", str(source), "-o",
                        str(obj)], check=True)
        command = [LLVM_OBJDUMP, "-d", str(obj)]
        return best(3, lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))


def speed() -> str:
    isa = instruction_set(target("gfx90a"))
    code = sample_code(1_000_000)
    scan = isa.scan(code)
    offsets = scan.offsets[scan.rows >= 0][:100_000].tolist()
    insts = [isa.decode(code, offset) for offset in offsets]
    rows = [
        ("llvm-objdump -d", len(scan) / objdump_seconds(code)),
        ("scan, all fields", len(scan) / best(5, lambda: isa.scan(code))),
        ("decode, one at a time", len(offsets) / best(5, lambda: [isa.decode(code, offset) for offset in offsets])),
        ("text, one at a time", len(offsets) / best(5, lambda: [isa.text(inst) for inst in insts])),
    ]
    loads = {name: min(float(subprocess.run([sys.executable, "-c", LOADS, name], capture_output=True, text=True,
                                            check=True).stdout) for _ in range(3))
             for name in ("gfx90a", "gfx1030", "gfx1100", "gfx1201", "gfx1250")}
    lines = "\n".join(f"| {name} | {rate / 1e3:.0f} |" for name, rate in rows)
    times = ", ".join(f"{name} {1e3 * seconds:.0f} ms" for name, seconds in loads.items())
    return f"\n## Speed\n\n{len(scan)} instructions of gfx90a code, one core, in one run.\n\n" \
        f"| what | thousand instructions a second |\n|---|---|\n{lines}\n\nTables load in: {times}.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="everything, and write benchmarks/isa.md")
    options = parser.parse_args()
    text = speed()
    print(text)
    text = table(options.all) + text
    if options.all:
        (ROOT / "benchmarks" / "isa.md").write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
