"""The demonstration as tables and a verdict."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from luthier_py.report.cloned import change


def demo_table(demo: Any) -> Group:
    """``demo``: a session.demo.Demo."""
    return Group(_kernels(demo), Text(), _tools(demo), Text(), *_speed(demo), Text(), demo_verdict(demo))


def _kernels(demo: Any) -> Table:
    table = Table(title="instr_count, block level", title_justify="left", box=None, pad_edge=False)
    table.add_column("kernel")
    for column in (
        "by tool",
        "by emulator",
        "equal",
        "NumPy",
        "bits",
        "sites",
        "code bytes",
        "growth",
        "overhead",
        "SGPRs",
        "VGPRs",
    ):
        table.add_column(column, justify="right")
    for row in demo.rows:
        trial = row.trials[0]
        kernel = trial.cloned
        table.add_row(
            row.kernel,
            f"{trial.counted}",
            f"{row.instructions}",
            yes(trial.equal),
            yes(row.correct),
            yes(trial.identical),
            str(kernel.sites),
            change(kernel.bytes_before, kernel.bytes_after),
            f"{kernel.bytes_after / kernel.bytes_before:.2f}x",
            f"{row.overhead(0):.2f}x",
            change(kernel.before.sgprs, kernel.after.sgprs),
            change(kernel.before.vgprs, kernel.after.vgprs),
        )
    return table


def _tools(demo: Any) -> Table:
    table = Table("tool", box=None, pad_edge=False, title="all tools, all kernels", title_justify="left")
    for column in ("counts equal", "buffers identical", "overhead (geometric mean)"):
        table.add_column(column, justify="right")
    for index, trial in enumerate(demo.rows[0].trials):
        trials = [row.trials[index] for row in demo.rows]
        table.add_row(
            trial.tool, _of(t.equal for t in trials), _of(t.identical for t in trials), f"{demo.overhead(index):.2f}x"
        )
    return table


def _of(flags: Any) -> str:
    listed = list(flags)
    return f"{sum(listed)} of {len(listed)}"


def _speed(demo: Any) -> list[Text]:
    lines = []
    for s in demo.speeds:
        rate = s.instructions / s.seconds / 1e6
        lines.append(f"emulator, {s.kernel}: {s.instructions} wave instructions in {s.seconds:.3f} s, {rate:.0f} M/s")
    return list(map(Text, lines))


def yes(flag: bool) -> str:
    """``yes`` or ``NO``: a reader is to find the failures of a column."""
    return "yes" if flag else "NO"


def demo_verdict(demo: Any) -> Text:
    """The last line: the kernels that failed, or what was compared and found equal. ``demo``: as of `demo_table`."""
    failed = [row.kernel for row in demo.rows if not row.passed]
    if failed:
        return Text(f"verdict: FAILED for {', '.join(failed)}")
    trials = sum(len(row.trials) for row in demo.rows)
    return Text(
        f"verdict: passed; {len(demo.rows)} kernels, {trials} instrumented runs: every count equals the emulator's, "
        "every output buffer is bit-identical to the original kernel's and agrees with NumPy; block-level counting "
        f"costs {demo.overhead(0):.2f}x executed instructions"
    )
