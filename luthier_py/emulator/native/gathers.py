"""What gathers.h declares: a strip's dwords, or pairs of them, from places of their own.

In: nothing. Out: LLVM IR, which is linked with the C. Hosts have instructions for it, and LLVM knows which of them it
pays on.
"""

from __future__ import annotations

from luthier_py.emulator.records.layout import STRIP

_ALL = ", ".join(["i1 true"] * STRIP)


def gather_functions() -> str:
    """Definitions. Offsets have no sign, and hosts take them for such as have one."""
    return "".join(_gather(name, bits) for name, bits in (("dwords", 32), ("pairs", 64)))


def _gather(name: str, bits: int) -> str:
    offsets, values = f"<{STRIP} x i32>", f"<{STRIP} x i{bits}>"
    gather = f"@llvm.masked.gather.v{STRIP}i{bits}.v{STRIP}p0"
    return f"""declare {values} {gather}(<{STRIP} x ptr>, <{STRIP} x i1>, {values})
define {values} @gather_{name}(ptr %start, {offsets} %offsets) alwaysinline {{
  %middle = getelementptr i8, ptr %start, i64 {1 << 31}
  %signed = xor {offsets} %offsets, splat (i32 {1 << 31})
  %places = getelementptr i8, ptr %middle, {offsets} %signed
  %found = call {values} {gather}(<{STRIP} x ptr> align 1 %places, <{STRIP} x i1> <{_ALL}>, {values} poison)
  ret {values} %found
}}
"""
