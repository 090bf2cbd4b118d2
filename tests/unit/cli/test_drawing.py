"""`luthier info --cfg`: a drawing with what a run has counted, and what makes no sense."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from luthier_py.samples import sample

FILE = sample("bitonic_sort").path


def test_a_kernel_is_drawn_with_what_a_run_counted(luthier: Any, tmp_path: Path) -> None:
    counts, drawing = tmp_path / "counts.json", tmp_path / "cfg.svg"
    launch = [FILE, "--kernel", "bitonic_sort", "--grid", 2, "--block", 256, "inout:u32[1024]=random:1"]
    assert luthier("run", *launch, "-t", "hot_blocks,branch_edges", "--output", counts)[0] == 0
    assert luthier("info", FILE, "--cfg", "bitonic_sort", "--counts", counts, "-o", drawing) == (0, f"{drawing}\n", "")
    texts = {text.text for text in ElementTree.parse(drawing).iter("{http://www.w3.org/2000/svg}text")}
    assert "kernel bitonic_sort, 7 blocks, 2 loops" in texts and {"360 times", "351", "9"} <= texts
    code, plain, _ = luthier("info", FILE, "--cfg", "bitonic_sort")
    assert code == 0 and plain.startswith("<svg ") and " times" not in plain


def test_what_makes_no_sense(luthier: Any, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text('{"launches": []}')
    other = '{"tool": "instr_count", "launches": [{"kernel": "bitonic_sort", "report": {"instructions": 1}}]}'
    (tmp_path / "other.json").write_text(other)
    for arguments, code, words in (
        (("--cfg", "nothing"), 2, "no kernel nothing; it has 1: bitonic_sort"),
        (("-o", "x.svg"), 2, "-o is for --cfg KERNEL"),
        (("--cfg", "bitonic_sort", "--json"), 2, "--cfg draws one kernel"),
        (("--cfg", "bitonic_sort", "--counts", tmp_path / "none.json"), 1, "is no file that --output FILE.json has"),
        (("--cfg", "bitonic_sort", "--counts", tmp_path / "other.json"), 2, "has no counts of blocks or of the ways"),
        (("--cfg", "nothing", "--counts", tmp_path / "other.json"), 2, "no kernel nothing; it has 1: bitonic_sort"),
    ):
        found, _, said = luthier("info", FILE, *arguments)
        assert (found, words in said) == (code, True), said
