"""Which kernels of libraries that people install can be instrumented? Each patch is proved, as always; nothing is run.

In: LUTHIER_ROCM_LIBRARIES, host libraries separated by colons; `--kernels N`: at most about so many of each library for
each target, spread over its objects; `--target REGEX`. Out: a table on stdout, and in installed.md.
"""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from luthier_py.binary.loader import load, unbundle
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Refusal, load_tool

PAGE = Path(__file__).with_name("installed.md")
TOOLS = ("instr_count", "lds_bank_conflicts")
TEXT = """# Kernels of installed libraries

`python benchmarks/installed.py --kernels {most}` wrote this page. These kernels were compiled by others; of a library
there are at most about {most} for each target. Both tools instrumented each, and each patch was proved harmless.
*Sites* are places where a hook was put, *code* is how many times as long the kernels with sites became. A kernel
without LDS has none for `lds_bank_conflicts`.

{table}
"""


@dataclass
class Row:
    """One library for one target; numbers by tool."""

    objects: int = 0
    kernels: int = 0
    instrumented: Counter[str] = field(default_factory=Counter)
    sites: Counter[str] = field(default_factory=Counter)
    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    refused: list[Refusal] = field(default_factory=list)

    def take(self, code: bytes, kernels: Sequence[str]) -> None:
        self.objects += 1
        self.kernels += len(kernels)
        for tool in TOOLS:
            made = instrument(code, load_tool(tool), kernels=kernels, keep_going=True)
            self.refused += made.refused
            self.instrumented[tool] += len(made.patched.report)
            for kernel in made.patched.report:
                self.sites[tool] += kernel.sites
                self.before[tool] += kernel.bytes_before
                self.after[tool] += kernel.bytes_after

    def cells(self) -> Iterator[str]:
        yield from (str(self.objects), str(self.kernels))
        for tool in TOOLS:
            growth = f"{self.after[tool] / self.before[tool]:.2f}" if self.before[tool] else ""
            yield from (str(self.instrumented[tool]), str(self.sites[tool]), growth)
        yield str(len(self.refused))


def objects_of(path: Path, targets: re.Pattern[str]) -> Mapping[str, list[tuple[bytes, list[str]]]]:
    """By target: code objects with the names of their kernels."""
    found = defaultdict(list)
    for member in unbundle(path.read_bytes(), path.name):
        obj = load(member.data)
        if obj.kernels and targets.fullmatch(obj.target.name):
            found[obj.target.name].append((bytes(member.data), [kernel.name for kernel in obj.kernels]))
    return found


def measured(path: Path, most: int, targets: re.Pattern[str]) -> Iterator[tuple[str, Row]]:
    for name, objects in sorted(objects_of(path, targets).items()):
        stride, row, place = max(1, sum(len(kernels) for _, kernels in objects) // most), Row(), 0
        for code, kernels in objects:
            chosen = kernels[-place % stride :: stride]
            place += len(kernels)
            if chosen:
                row.take(code, chosen)
        yield name, row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=100, help="of each library for each target, about")
    parser.add_argument("--target", type=re.compile, default=re.compile(".*"), metavar="REGEX")
    options = parser.parse_args()
    paths = [path for path in os.environ.get("LUTHIER_ROCM_LIBRARIES", "").split(":") if path]
    if not paths:
        print("LUTHIER_ROCM_LIBRARIES names no library: nothing to measure")
        return
    heads = [f"{tool}: {what}" for tool in TOOLS for what in ("kernels", "sites", "code")]
    lines = [f"| {' | '.join(('library', 'target', 'objects', 'kernels', *heads, 'refused'))} |"]
    lines.append("|---|---|" + "---:|" * (len(heads) + 3))
    print(*lines, sep="\n")
    refused: list[Refusal] = []
    for path in paths:
        for name, row in measured(Path(path), options.kernels, options.target):
            lines.append(f"| {' | '.join((os.path.basename(path), name, *row.cells()))} |")
            print(lines[-1], flush=True)
            refused += row.refused
    for each in refused:
        print(f"refused: {each.kernel}: {each.reason}")
    PAGE.write_text(TEXT.format(most=options.kernels, table="\n".join(lines)))


if __name__ == "__main__":
    main()
