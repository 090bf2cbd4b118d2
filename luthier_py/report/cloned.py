"""What became of one kernel, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luthier_py.report.plain import Json
    from luthier_py.rewrite.inject.cloned import ClonedKernel


def collect_clone_facts(row: ClonedKernel) -> Json:
    """JSON-ready; each list is the number before instrumentation and the one after it. ``private_bytes``: of a lane,
    all of them."""
    return {
        "name": row.name,
        "clone": row.clone,
        "sites": row.sites,
        "code_bytes": [row.bytes_before, row.bytes_after],
        "sgprs": [row.before.sgprs, row.after.sgprs],
        "vgprs": [row.before.vgprs, row.after.vgprs],
        "waves_per_simd": [row.before.waves, row.after.waves],
        "lds_bytes": [row.before.lds_bytes, row.after.lds_bytes],
        "private_bytes": [row.before.private_bytes, row.after.private_bytes],
    }


def change(before: int, after: int) -> str:
    """One number when nothing changed."""
    return str(before) if before == after else f"{before} -> {after}"
