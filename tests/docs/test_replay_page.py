"""docs/replay.md: its commands are typed, and what they print is what the page shows."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from luthier_py.emulator.devices.record_file import read_record
from luthier_py.samples import FOLDER

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "replay.md").read_text()
COMPILE = "clang-22 -x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -fuse-cuid=none -O2"


def test_the_example(tmp_path: Path, typed: Callable[[str], Any], require_tool: Callable[[str], str]) -> None:
    require_tool("clang-22")
    found = re.findall(r"(?:^    .*\n)+", PAGE, re.MULTILINE)
    _, commands, shown, different = (re.sub("^    ", "", block, flags=re.MULTILINE) for block in found)
    new = re.search(r"`(y\[i\] = i == 700 .*?)`", PAGE)
    rebuilt = re.search(r"`(luthier replay saxpy.lrec --kernel-from changed.co)`", PAGE)
    assert new and rebuilt
    text = (FOLDER / "saxpy.hip").read_text()
    (tmp_path / "changed.hip").write_text(text.replace("y[i] = a * x[i] + y[i]", new[1]))
    compile_ = f"{COMPILE} -I{FOLDER} --offload-arch=gfx90a changed.hip -o changed.co"
    subprocess.run(compile_.split(), cwd=tmp_path, check=True)
    done = [typed(line) for line in (*commands.splitlines(), rebuilt[1])]
    assert [each.code for each in done] == [0, 0, 1], done
    printed = "".join(each.out + each.err for each in done).splitlines()
    for line in (*shown.splitlines(), *different.splitlines()):
        assert any(each.startswith(line.removesuffix(" ...")) for each in printed), f"{line}\nis not in\n{printed}"
    for file, words in ((tmp_path / "saxpy.lrec", "saxpy, as above"), (FOLDER / "gemm_4bit.lrec", "gemm_4bit_simt")):
        row = next(line for line in PAGE.splitlines() if line.startswith("|") and words in line)
        told = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+)(?: bytes)? \|", row)]
        record = read_record(file)
        held = len(record.code), sum(each.size for each in record.allocations), len(record.pages)
        assert tuple(told[:3]) == held and abs(told[3] - file.stat().st_size) < 0.05 * told[3]  # as zstd does it
