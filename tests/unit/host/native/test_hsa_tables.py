"""Places of functions in ROCr's tables (host/hsa/hsa.h, rocr.c) against each release's hsa_api_trace.h."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from rocm_stack import VARIABLE, lacking

ROOT = Path(__file__).resolve().parents[4]
HSA = ROOT / "luthier_py" / "host" / "hsa"
HEADER = "usr/include/hsa/hsa_api_trace.h"


def headers() -> list[Path]:
    """Of the release that CI has, and of the suites that `make test-stacks` has unpacked."""
    stack = os.environ.get(VARIABLE)
    found = [Path(stack) / HEADER] if stack else []
    found += sorted((ROOT / "build" / "stacks").glob(f"*/unpacked/{HEADER}"))
    return [path for path in found if path.exists()]


def table(text: str, name: str) -> list[str]:
    """Functions in the order of the header's structure."""
    body = re.search(rf"struct {name} \{{(.*?)\n\}};", text, re.DOTALL)
    assert body, name
    return re.findall(r"(\w+)_fn\s*;", body[1])


def ours(macro: str) -> dict[str, int]:
    text = re.search(rf"#define {macro}\(F\)(.*?[^\\])\n", (HSA / "hsa.h").read_text(), re.DOTALL)
    assert text
    return {name: int(place) for place, name in re.findall(r"F\((\d+), \w+, (\w+),", text[1])}


def grown() -> tuple[int, int]:
    at, by = re.findall(r"GROWN_(?:AT|BY) = (\d+)", (HSA / "rocr.c").read_text())
    return int(at), int(by)


def test_each_function_is_where_the_release_has_it() -> None:
    found = headers()
    if not found:
        lacking(f"no {HEADER}: set {VARIABLE}, or run `make test-stacks`")
    at, by = grown()
    for header in found:
        text = header.read_text()
        core, amd = table(text, "CoreApiTable"), table(text, "AmdExtTable")
        later = "hsa_amd_memory_async_copy_on_engine" in amd
        wrong = {name: place for name, place in ours("CORE_FUNCTIONS").items() if core[place] != name}
        for name, place in ours("AMD_FUNCTIONS").items():
            place += by if later and place >= at else 0
            if amd[place] != name:
                wrong[name] = place
        assert not wrong, (header, wrong)


@pytest.mark.parametrize("macro", ["CORE_FUNCTIONS", "AMD_FUNCTIONS"])
def test_places_are_read(macro: str) -> None:
    assert len(ours(macro)) > 7
