"""What a code object holds, as data and as a table."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from luthier_py.loader import CodeObject, KernelRecord

Facts = dict[str, Any]


def describe(obj: CodeObject) -> Facts:
    """JSON-ready facts; sizes in bytes."""
    return {
        "file": obj.name,
        "target": obj.target.name,
        "code_object_version": obj.version,
        "xnack": obj.xnack.name.lower(),
        "sramecc": obj.sramecc.name.lower(),
        "text_bytes": sum(len(r) for r in obj.text_ranges),
        "kernels": [_kernel(obj, kernel) for kernel in obj.kernels],
    }


def _kernel(obj: CodeObject, kernel: KernelRecord) -> Facts:
    descriptor = kernel.descriptor
    vgprs, sgprs = descriptor.vgpr_count(obj.target), descriptor.sgpr_count(obj.target)
    return {
        "name": kernel.name,
        "entry": kernel.entry,
        "wave_size": descriptor.wave_size,
        "sgprs": sgprs,
        "vgprs": vgprs,
        "waves_per_simd": obj.target.waves_for(vgprs, sgprs, wave_size=descriptor.wave_size),
        "lds_bytes": descriptor.group_segment_fixed_size,
        "private_bytes": descriptor.private_segment_fixed_size,
        "kernarg_bytes": descriptor.kernarg_size,
        "arguments": [
            {"name": a.name, "offset": a.offset, "size": a.size, "kind": a.value_kind}
            for a in kernel.args
            if not a.hidden
        ],
    }


def info_tables(all_facts: list[Facts]) -> Group:
    return Group(*(info_table(facts) for facts in all_facts))


def info_table(facts: Facts) -> Group:
    head = Text(
        f"{facts['file']}: {facts['target']}, code object v{facts['code_object_version']}, "
        f"xnack {facts['xnack']}, sramecc {facts['sramecc']}, {facts['text_bytes']} bytes of code"
    )
    table = Table("kernel", box=None, pad_edge=False)
    for column in ("entry", "SGPRs", "VGPRs", "waves/SIMD", "LDS", "private", "kernarg"):
        table.add_column(column, justify="right")
    table.add_column("arguments")
    for k in facts["kernels"]:
        arguments = " ".join(
            f"{a['name'] or '?'}:{a['size']}{'*' if 'buffer' in a['kind'] else ''}" for a in k["arguments"]
        )
        table.add_row(
            k["name"],
            f"0x{k['entry']:x}",
            *map(
                str,
                (
                    k["sgprs"],
                    k["vgprs"],
                    k["waves_per_simd"],
                    k["lds_bytes"],
                    k["private_bytes"],
                    k["kernarg_bytes"],
                ),
            ),
            arguments,
        )
    return Group(head, table)
