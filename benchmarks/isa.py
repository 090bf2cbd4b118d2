"""How far our instruction set agrees with LLVM 22's, target by target, and (isa_speed.py) how fast it is beside it.

``isa.py`` takes a part of every target and prints the tables; ``isa.py --all`` takes a random word for each of the
65536 values of the opcode half-word (every second one for the second wave size), random operands for every row many
times, and the sample kernels compiled for every target, and writes benchmarks/isa.md. ``--keep FOLDER`` keeps what is
measured there and does not measure it again. Code of installed libraries is compared where LUTHIER_ROCM_LIBRARIES names
them (see tests/differential/test_isa_real.py). Needs llvm-mc-22, llvm-objdump-22 and clang-22.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "differential"), str(ROOT / "benchmarks")]

from isa_agreement import agreement, assembled, texts_of  # noqa: E402
from isa_libraries import corpus  # noqa: E402
from isa_objects import compare, compiled, lines_of  # noqa: E402
from isa_speed import speed  # noqa: E402
from isa_words import words_of_opcodes, words_of_rows  # noqa: E402

from luthier_py.isa import InstructionSet, instruction_set, targets  # noqa: E402
from luthier_py.samples import SAMPLES  # noqa: E402

LLVM_MC, LLVM_OBJDUMP, CLANG = (shutil.which(name) or name for name in ("llvm-mc-22", "llvm-objdump-22", "clang-22"))
ASSEMBLY_OF_ONE_GENERATION = "lds_widths"  # this sample has inline assembly that gfx1250 lacks
ENOUGH = 100_000  # words of a target
OF_ROWS = 34_500  # words with random operands; for each of two wave sizes a third
MEGABYTES = 20.0  # of code from each library
HEAD = """# The instruction set against LLVM 22.1.8

Written by `benchmarks/isa.py --all`; nothing here is written by hand.

## Words and lines

Words: random operands for every row of the table, and random words for every value of the half-word that holds opcodes.
Length, mnemonic, operands (registers: file, index, width), full text, and whether encoding the fields decodes to the
same again, are percentages of the words that both accept. Validity (both accept, or both refuse) is a percentage of all
words. "Assembled" is a percentage of the lines of our text that LLVM's assembler takes: ours makes the same bytes.
Words and lines whose difference is explained below are in none of these, but in "explained", a percentage of all words
and lines. A reason counts only with a proof: LLVM's assembler refuses what LLVM's disassembler wrote, or makes
something else of it; for v_cmpx, LLVM reads the word with EXEC as vdst as we do. Three reasons go without: crashes,
read-only sources as destinations (both of LLVM's tools take them, the manuals do not), and which of two encodings, or
what banks, v_dual_dot2acc has. "Differ" counts what is left.

| target | wave | words | length | mnemonic | operands | text | encoded | validity | lines | assembled | explained \
| differ |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""
KERNELS = """
## The sample kernels, compiled by clang-22 for every target and wave size

Every line of llvm-objdump-22: its text equal to ours, encode(decode(bytes)) and assemble(text) equal to the bytes.

| target | wave | kernels | instructions | distinct | text | encoded | assembled | differ |
|---|---|---|---|---|---|---|---|---|"""
LIBRARIES = """
## Code that no one here compiled

Every line of llvm-objdump-22 of code objects inside Debian's librocrand1 and librocsparse0, and in PyPI's bitsandbytes
and jax-rocm7-plugin. "Other bits": an older or newer compiler sets don't-care bits in another way than LLVM 22's
assembler; ours makes what LLVM's makes. "Refused": words that neither LLVM nor we can read, and what both read and
neither assembler writes: zeros between functions, and pairs of v_dual that a newer compiler knows to be allowed.

| library | target | wave | instructions | distinct | text | encoded | assembled | other bits | refused | differ |
|---|---|---|---|---|---|---|---|---|---|---|"""


class Kept:
    """Measurements by name; a folder of JSON files, if there is one, makes them last."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def get(self, name: str, measure: Callable[[], Any]) -> Any:
        if self.folder is None:
            return measure()
        file = self.folder / f"{name}.json"
        if not file.exists():
            file.write_text(json.dumps(measure()))
        return json.loads(file.read_text())


def every_isa() -> Iterator[InstructionSet]:
    for row in targets():
        for wave_size in row.wave_sizes:
            yield instruction_set(row, wave_size)


def name_of(isa: InstructionSet) -> str:
    return f"{isa.target.name} | {isa.wave_size}"


def words(isa: InstructionSet, everything: bool) -> dict[str, Any]:
    """Words and lines of one instruction set, with seeds of its own."""
    seed = zlib.crc32(name_of(isa).encode())
    every, second = 1 if everything else 8, isa.wave_size != isa.target.wave_sizes[0]
    of_rows = OF_ROWS // 3 if len(isa.target.wave_sizes) > 1 else OF_ROWS
    chosen = list(words_of_opcodes(seed + 1, 1, 1 + second if everything else 16))
    chosen += words_of_rows(isa, seed, -(-of_rows // len(isa.ops)) if everything else 1, every)
    lines = texts_of(isa, words_of_rows(isa, seed + 2, 1, every))
    return {"words": vars(agreement(LLVM_MC, isa, chosen)), "lines": vars(assembled(LLVM_MC, isa, lines))}


def kernels(isa: InstructionSet, everything: bool) -> dict[str, Any]:
    left_out = isa.target.literals64  # gfx1250 and its like
    taken = [sample.path.with_suffix(".hip") for sample in (SAMPLES if everything else SAMPLES[:1])
             if not (left_out and sample.name == ASSEMBLY_OF_ONE_GENERATION)]
    with tempfile.TemporaryDirectory() as folder:
        lines = Counter(line for source in taken
                        for line in lines_of(LLVM_OBJDUMP, compiled(CLANG, source, isa, Path(folder)), isa))
    return {"kernels": len(taken), **vars(compare(LLVM_MC, isa, lines))}


def library(path: str) -> dict[str, Any]:
    taken = corpus(LLVM_OBJDUMP, path, MEGABYTES)
    return {"objects": taken.objects, "bytes": taken.code_bytes, "not_loaded": taken.not_loaded,
            "not_scanned": taken.not_scanned,
            "lines": {name_of(isa): vars(compare(LLVM_MC, isa, lines)) for isa, lines in taken.lines.items()}}


def percent(part: int, whole: int) -> str:
    """Cut, not rounded: 100.00 means all."""
    return f"{10000 * part // whole / 100:.2f}" if whole else "-"


def words_row(name: str, both: dict[str, Any]) -> str:
    found, lines = both["words"], both["lines"]
    explained = sum(found["explained"].values())
    cells = [name, found["words"],
             *(percent(found[key], found["compared"]) for key in ("length", "mnemonic", "operands", "text", "encoded")),
             percent(found["words"] - explained - found["validity"], found["words"] - explained), lines["lines"],
             percent(lines["equal"], lines["compared"]),
             f"{100 * (explained + sum(lines['explained'].values())) / (found['words'] + lines['lines']):.2f}",
             len(found["differences"]) + len(lines["differences"])]
    return f"| {' | '.join(map(str, cells))} |"


def kernels_row(name: str, found: dict[str, Any]) -> str:
    cells = [name, found["kernels"], found["lines"], found["distinct"],
             *(percent(found[key], found["lines"]) for key in ("text", "encoded", "assembled")),
             len(found["differences"])]
    return f"| {' | '.join(map(str, cells))} |"


def library_rows(path: str, measured: dict[str, Any]) -> list[str]:
    rows = []
    for name, found in measured["lines"].items():
        code = found["lines"] - found["not_read"]
        written = code - found["refused"]
        cells = [os.path.basename(path), name, code, found["distinct"], percent(found["text"], code),
                 percent(found["encoded"], written), percent(found["assembled"], written), found["other_bits"],
                 found["refused"] + found["not_read"], len(found["differences"])]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return rows


def library_summary(path: str, measured: dict[str, Any]) -> str:
    return (f"\n{os.path.basename(path)}: {measured['objects']} objects, {measured['bytes']} bytes of code; "
            f"not loaded: {measured['not_loaded']}; dwords that `scan` takes for no code: {measured['not_scanned']}.")


def reasons(title: str, counts: Counter[str]) -> str:
    rows = "\n".join(f"| {reason.replace('|', chr(92) + '|')} | {count} |" for reason, count in counts.most_common())
    return f"\n### {title}\n\n| reason | count |\n|---|---|\n{rows}"


def shown(output: list[str], text: str) -> None:
    output.append(text)
    print(text, flush=True)


def words_section(kept: Kept, everything: bool) -> list[str]:
    output = [HEAD]
    measured = []
    print(HEAD)
    for isa in every_isa():
        both = kept.get(f"words-{isa.target.name}-{isa.wave_size}", lambda isa=isa: words(isa, everything))
        measured.append(both)
        shown(output, words_row(name_of(isa), both))
    explained, misread, lenient = (sum((Counter(both[part][key]) for both in measured), Counter()) for part, key in (
        ("words", "explained"), ("lines", "explained"), ("lines", "lenient")))
    total, lines = (sum(both[part][part] for both in measured) for part in ("words", "lines"))
    output.append(f"\n{total} words and {lines} lines in all.")
    of_target: Counter[str] = Counter()
    for isa, both in zip(every_isa(), measured, strict=True):
        of_target[isa.target.name] += both["words"]["words"]
    part = [name for name, count in of_target.items() if count < ENOUGH]
    if part:
        output.append(f"\nOnly a part was measured, fewer than {ENOUGH} words, of: {', '.join(part)}.")
    output.append(reasons("Words that LLVM's disassembler accepts, refuses or prints wrongly", explained))
    output.append(reasons("Lines that LLVM's assembler reads wrongly", misread))
    output.append(reasons("Lines that only LLVM's assembler refuses, by its message", lenient))
    different = [text for both in measured for part in ("words", "lines") for text in both[part]["differences"]]
    if different:
        output.append("\n### Differences\n\n" + "\n".join(f"* `{text}`" for text in different[:200]))
    return output


def objects_sections(kept: Kept, everything: bool) -> list[str]:
    output: list[str] = []
    shown(output, KERNELS)
    for isa in every_isa():
        name = f"kernels-{isa.target.name}-{isa.wave_size}"
        shown(output, kernels_row(name_of(isa), kept.get(name, lambda isa=isa: kernels(isa, everything))))
    paths = [path for path in os.environ.get("LUTHIER_ROCM_LIBRARIES", "").split(":") if path]
    if paths and everything:
        shown(output, LIBRARIES)
        measured = {path: kept.get(f"library-{os.path.basename(path)}", lambda path=path: library(path))
                    for path in paths}
        output += [row for path in paths for row in library_rows(path, measured[path])]
        output += [library_summary(path, measured[path]) for path in paths]
    return output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="everything, and write benchmarks/isa.md")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep measurements here, and take those that are")
    options = parser.parse_args()
    if missing := [name for name in (LLVM_MC, LLVM_OBJDUMP, CLANG) if shutil.which(name) is None]:
        print(f"left out: needs {', '.join(missing)}")
        return
    kept = Kept(options.keep)
    output = [*words_section(kept, options.all), *objects_sections(kept, options.all)]
    if options.all:
        shown(output, kept.get("speed", lambda: speed(LLVM_MC, LLVM_OBJDUMP)))
        (ROOT / "benchmarks" / "isa.md").write_text("\n".join(output) + "\n")


if __name__ == "__main__":
    main()
