"""Every meaning made wrong: which mutants do the cases of the reference campaign catch?

    python tests/mutations/meanings.py [TARGET...] [--rows N] [--seed S] [--jobs J]       make mutants

In: the rows of the targets' tables, each operation in each of its formats once (on the first target that has it), or N
of them for each target. Out: meanings.md beside this file; the exit code is 1 if less than 99 % are caught.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from meaning_trials import Fate, Trial, tried  # noqa: E402
from reference.campaign import instructions, rows  # noqa: E402

from luthier_py.isa import OpInfo  # noqa: E402
from luthier_py.isa.semantics.evidence import COMPARED  # noqa: E402

PAGE = Path(__file__).resolve().parent / "meanings.md"
WANTED = 0.99
FAIR = (Fate.CAUGHT, Fate.STOPPED, Fate.ALIVE)
TEXT = """# Meanings made wrong

Written by `make mutants`{how}. A mutant is an instruction's meaning with one thing wrong, made by `meaning_mutants.py`
from the meaning itself: a primitive is another one, or signed for unsigned, or has its operands swapped, or rounds
otherwise; a constant is another; two sources change places; a field of a row that is data (width, sign, half, operation
of an atomic, which lane) is another; a field of the encoding is not looked at (neg, abs, op_sel, clamp, omod, SDWA,
DPP, offsets and their sign); EXEC counts for nothing. Of a function of many steps there are at most 16. A mutant is
caught when some case of the reference campaign (each row's, with every overlap, each modifier by itself, and operands
at which steps of the meaning are at their edges) ends in another state, or in an error.

The mutant stands in the reference reader, against the right reader, which the campaign compares with the emulator;
tests put a sample into the emulator instead. So what is measured is whether the cases tell a wrong meaning from the
right one. A meaning that is written wrong from the start is wrong for both readers: that only what does not share it
sees, which is a second definition of each function of values (tests/reference/test_definitions.py), and results from
elsewhere (NumPy's in tests/unit/isa/semantics, LLVM's tables of effects, programs and kernels of others).

*Same* have the normal form of the right meaning (operands of sums and products in one order): proved. *Untold* gave
the same bits as the right one for 1,000 tuples of edge values, or, of a field or EXEC, in three times as many cases
again, and are no more than that. Neither counts. *Alive* is what such a search can tell from the right meaning, though
the campaign's own cases do not.

{table}
"""


def chosen(names: list[str], count: int | None, seed: int) -> list[tuple[str, OpInfo]]:
    seen: set[tuple[str, str, int]] = set()
    found: list[tuple[str, OpInfo]] = []
    for name in names:
        own = [op for op in rows(instructions(name)) if count or (op.base, op.format, op.size_bytes) not in seen]
        if count:
            random.Random(f"{name} {seed}").shuffle(own)
        for op in own[:count]:
            key = op.base, op.format, op.size_bytes
            if count or key not in seen:
                seen.add(key)
                found.append((name, op))
    return found


def of_row(task: tuple[str, OpInfo, int]) -> tuple[str, list[Trial]]:
    name, op, seed = task
    return name, list(tried(instructions(name), op, seed))


def table(counts: dict[str, Counter[Fate]], seconds: float) -> Iterator[str]:
    yield "| target | mutants | caught | of these by an error | same | untold | alive | caught of those that count |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    total: Counter[Fate] = sum(counts.values(), Counter())
    for name, found in [*counts.items(), ("all", total)]:
        yield (f"| {name} | {found.total()} | {found[Fate.CAUGHT] + found[Fate.STOPPED]} | {found[Fate.STOPPED]} | "
               f"{found[Fate.SAME]} | {found[Fate.UNTOLD]} | {found[Fate.ALIVE]} | {100 * share(found):.2f} % |")
    yield ""
    yield f"It took {seconds / 60:.0f} minutes."


def share(found: Counter[Fate]) -> float:
    fair = sum(found[fate] for fate in FAIR)
    return 1.0 if not fair else 1 - found[Fate.ALIVE] / fair


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=list(COMPARED), help="as in evidence.COMPARED: gfx1201/32")
    parser.add_argument("--rows", type=int, help="so many of each target, at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    start, counts, alive = time.monotonic(), dict[str, Counter[Fate]](), list[str]()
    tasks = [(name, op, options.seed) for name, op in chosen(options.targets, options.rows, options.seed)]
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, trials in pool.map(of_row, tasks, chunksize=4):
            counts.setdefault(name, Counter()).update(trial.fate for trial in trials)
            for trial in trials:
                if trial.fate is Fate.ALIVE:
                    alive.append(f"* {name} {trial.record}: {trial.what}")
                    print(alive[-1], flush=True)
    how = f" --rows {options.rows} --seed {options.seed}" if options.rows else ""
    lines = [*table(counts, time.monotonic() - start), *(["", "Alive:", "", *alive] if alive else [])]
    print("\n".join(lines[: len(counts) + 3]))
    PAGE.write_text(TEXT.format(how=how, table="\n".join(lines)))
    return int(share(sum(counts.values(), Counter())) < WANTED)


if __name__ == "__main__":
    raise SystemExit(main())
