"""``python -m luthier_py.emulator.native.generate``: compile the C beside this; ``--check``: fail where that gives
something else than what is committed.

In: the sources, the records of layout, clang-22 and opt-22. Out: LLVM bitcode of each source for each size of waves, in
the folder bitcode, and what it was made of. Invariant: the same compiler gives the same bytes in any folder; bitcode
depends on no host: it comes from a target that has no features and passes vectors as they are, and says nothing of it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from enum import IntEnum
from pathlib import Path

from luthier_py.base.storage import cache_key
from luthier_py.emulator.native.atomics import HostStep
from luthier_py.emulator.native.bitcode import FOLDER
from luthier_py.emulator.native.clocks import PAUSE_MICROSECONDS
from luthier_py.emulator.native.next_wave import MOVED
from luthier_py.emulator.records import layout
from luthier_py.emulator.records.budgets import OWN_STEP, SLICES, budget

SOURCES = Path(__file__).parent
COMPILER = "Debian clang version 22.1.8"
MADE_OF = "made_of"
"""In the folder: a key of the sources and the header."""
_CLANG, _OPTIMISER = "clang-22", "opt-22"
_FLAGS = (
    "--target=bpfel -std=c17 -ffreestanding -fPIC -fomit-frame-pointer -fno-strict-aliasing -fno-strict-overflow "
    "-Wall -Wextra -Werror -O2 -Xclang -disable-llvm-passes -Xclang -disable-lifetime-markers -S -emit-llvm -o -"
).split()
_PASSES = "function(sroa,early-cse,simplifycfg)"
"""What makes the text small; nothing is inlined before it is known which functions are used."""
_OF_TARGET = re.compile(r'^target .*\n| "target-[a-z]+"="[^"]*"|^!llvm\.ident.*\n', re.MULTILINE)
_RECORDS = {
    "worker": layout.WORKER, "site": layout.SITE, "allocation": layout.ALLOCATION, "time": layout.TIME,
    "launch": layout.LAUNCH, "group": layout.GROUP, "ready": layout.READY,
}  # fmt: skip
_ENUMS: dict[str, type[IntEnum]] = {
    "STATUS": layout.Status, "FAULT": layout.Fault, "REFUSAL": layout.SurfaceRefusal, "OUTCOME": layout.Outcome,
    "EVENT": layout.GroupEvent, "STEP": HostStep,
}  # fmt: skip


def write_header() -> str:
    """Of records.h: structs of u64, and numbers."""
    lines = [f"struct wave {{ u32 scalars[{layout.SCALARS}]; {_members(layout.WAVE)} }};"]
    lines += [f"struct {name} {{ {_members(fields)} }};" for name, fields in _RECORDS.items()]
    for prefix, values in _ENUMS.items():
        lines.append(f"enum {{ {', '.join(f'{prefix}_{value.name} = {int(value)}' for value in values)} }};")
    numbers = {
        "OUTCOMES": len(layout.Outcome), "MOVED": MOVED, "OWN_STEP": OWN_STEP, "FIRST_SLICE": budget(SLICES[0]),
        "COPIED_BYTES": layout.COPIED_BYTES, "NAMED_SCALAR_BYTES": layout.sgpr_offset(layout.NAMED_SCALARS),
        "WAVE_HEADER_BYTES": layout.WAVE_HEADER_BYTES, "MEETINGS_BYTES": layout.MEETINGS_BYTES,
        "WRITABLE": layout.WRITABLE, "FINE": layout.FINE, "PAUSE_MICROSECONDS": PAUSE_MICROSECONDS,
        "STRIP": layout.STRIP, "TIME_RING": layout.TIME_RING, "TIME_COUNTERS": len(layout.TIME_COUNTERS),
    }  # fmt: skip
    lines.append(f"enum {{ {', '.join(f'{name} = {value}' for name, value in numbers.items())} }};")
    for lanes in (32, 64):
        stride, agprs = layout.wave_stride(lanes), layout.row_offset(layout.AGPR_ROW, lanes)
        lines.append(f"#if LANES == {lanes}\nenum {{ WAVE_STRIDE = {stride}, AGPR_OFFSET = {agprs} }};\n#endif")
    return "\n".join(lines) + "\n"


def _members(fields: dict[str, int]) -> str:
    return f"u64 {', '.join(fields)};"


def compile_sources(folder: Path) -> None:
    """Write the bitcode, and what it was made of, into ``folder``."""
    with tempfile.TemporaryDirectory() as headers:
        Path(headers, "records.h").write_text(write_header())
        for source in sorted(SOURCES.glob("*.c")):
            for lanes in (32, 64):
                text = _run(_CLANG, *_FLAGS, f"-DLANES={lanes}", f"-I{headers}", source.name).decode()
                bitcode = _run(_OPTIMISER, f"-passes={_PASSES}", "-", "-o", "-", given=_OF_TARGET.sub("", text))
                (folder / f"{source.stem}.{lanes}.bc").write_bytes(bitcode)
    (folder / MADE_OF).write_text(key_of_sources() + "\n")


def key_of_sources() -> str:
    """A key of all that the bitcode is made of, beside the compiler."""
    paths = sorted([*SOURCES.glob("*.c"), *SOURCES.glob("*.h")])
    return cache_key(write_header(), *(part for path in paths for part in (path.name, path.read_text())))


def _run(*command: str, given: str = "") -> bytes:
    return subprocess.run(command, cwd=SOURCES, input=given.encode(), check=True, stdout=subprocess.PIPE).stdout


def main(arguments: list[str] | None = None) -> int:
    """Write what has changed. The exit code: 1 where ``--check`` has found something that would change."""
    parser = argparse.ArgumentParser(prog="luthier_py.emulator.native.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the committed bitcode, write nothing")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        compile_sources(Path(folder))
        made, kept = ({path.name: path.read_bytes() for path in Path(place).iterdir()} for place in (folder, FOLDER))
    stale = sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))
    for name in stale if not options.check else ():
        if name in made:
            (FOLDER / name).write_bytes(made[name])
        else:
            (FOLDER / name).unlink()
    print(f"{'stale' if options.check else 'written'}: {', '.join(stale) or 'nothing'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
