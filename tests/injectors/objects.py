"""Injectors that get wrong what waves begin with, private memory, descriptors, or what is linked.

Out: TABLE: by name, the subjects that it is tried on, and what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from injectors.judge import Patch, put, several
from luthier_py.binary.link import grow, layout, writer
from luthier_py.binary.loader.symbols import SymbolType
from luthier_py.binary.patch import FixupKind
from luthier_py.isa import Inst, RegSet, build
from luthier_py.rewrite import pipeline
from luthier_py.rewrite.inject import apply, initial_state, policies, prologue, resources, slots, spills
from luthier_py.rewrite.inject.spills import Spills


def described(**changes: Callable[[Any], int]) -> Patch:
    """A new kernel's descriptor has another number in a field."""
    return put(apply, "_new_kernel", lambda made: lambda *given: (lambda kernel: replace(
        kernel, descriptor=kernel.descriptor.replace(**{
            name: change(getattr(kernel.descriptor, name)) for name, change in changes.items()})))(made(*given)))


def told(**changes: Callable[[Any], Any]) -> Patch:
    """A new kernel's metadata says something else."""
    return put(grow, "_kernel_metadata", lambda made: lambda obj, kernel: (lambda found: found | {
        f".{name}": change(found.get(f".{name}")) for name, change in changes.items()})(made(obj, kernel)))


def begins(change: Callable[[list[Inst]], list[Inst]]) -> Patch:
    return put(prologue, "begun", lambda begun: lambda *given: change(begun(*given)))


def enlarged(**changes: Callable[[int], int]) -> Patch:
    return put(apply, "enable_initial_state", lambda enlarged: lambda target, kernel, kept, private=False: (
        lambda found: found if found == kernel.record.descriptor else found.replace(**{
            name: change(getattr(found, name)) for name, change in changes.items()}))(
                enlarged(target, kernel, kept, private)))


def linked(change: Callable[[bytearray, Any], None]) -> Patch:
    """Bytes of the whole object are changed at its end."""
    def make(link: Any) -> Any:
        def done(obj: Any, patch: Any) -> bytes:
            data = bytearray(link(obj, patch))
            change(data, obj)
            return bytes(data)

        return done

    return put(pipeline, "link", make)


def memory(**changes: Callable[[Any], Any]) -> Patch:
    return put(apply, "private_memory", lambda made: lambda *given: (lambda found: replace(
        found, **{name: change(getattr(found, name)) for name, change in changes.items()}))(made(*given)))


def one_cell(cells: Any) -> property:
    return property(lambda self: cells.fget(self)[:1] * len(cells.fget(self)))


def overlapping(cells: Any) -> property:
    return property(lambda self: tuple(replace(cell, offset_bytes=self.start + 2 * number)
                                       for number, cell in enumerate(cells.fget(self))))


def lanes_by(step: int) -> Patch:
    return put(build, "from_lane", lambda made: lambda isa, to, source, lane: made(
        isa, to, source, (lane + step) % isa.wave_size))


def wrong_order(around: Any) -> Any:
    return lambda self, before, behind: around(self, before[::-1], behind[::-1])


def under_own_exec(put_: Any) -> Any:
    return lambda self, own_exec: put_(self, not own_exec)


def fixed(change: Callable[[Any], Any]) -> Patch:
    return put(writer, "resolve", lambda resolve: lambda chunk, addresses: resolve(
        replace(chunk, fixups=tuple(map(change, chunk.fixups))), addresses))


def symbols(change: Callable[[Any], Any]) -> Patch:
    return put(grow, "_new_symbols", lambda made: lambda patch, new: list(map(change, made(patch, new))))


def twice(with_prologue: Any) -> Any:
    return lambda isa, clone, first: with_prologue(isa, clone, first._replace(insts=[*first.insts, *first.insts]))


BORN, FULL, ALL = ("born",), ("full",), ("marked", "born", "full")
TABLE: dict[str, tuple[tuple[str, ...], Patch]] = {
    # what waves begin with
    "what moved up is not moved back": (BORN,
                                        put(initial_state, "_emit_moves_back", lambda _: lambda *given: iter(()))),
    "what moved up is moved back from the last on": (
        BORN,
        put(initial_state, "_emit_moves_back", lambda moved: lambda *given: iter([*moved(*given)][::-1])),
    ),
    "the last is not moved back": (
        BORN,
        put(initial_state, "_emit_moves_back", lambda moved: lambda *given: iter([*moved(*given)][:-1])),
    ),
    "what moved up is moved back twice": (
        BORN,
        put(initial_state, "_emit_moves_back", lambda moved: lambda *given: iter([*moved(*given)] * 2)),
    ),
    "variables begin with one": (
        ("marked", "ways"),
        put(
            initial_state,
            "_fill_location",
            lambda filled: (
                lambda isa, location, values: (
                    [build.copy(isa, location, 1)] if values == [0] else filled(isa, location, values)
                )
            ),
        ),
    ),
    "the first variable is not cleared": (("marked", "ways"), begins(lambda insts: insts[1:])),
    "the last thing at a wave's begin is left out": (("marked", "born", "full"), begins(lambda insts: insts[:-1])),
    "a wave's begin is the other way round": (("marked", "born", "full"), begins(lambda insts: insts[::-1])),
    "a wave begins twice": (ALL, put(apply, "with_prologue", twice)),
    "ids of work-groups are exchanged": (
        BORN,
        put(initial_state, "_SOURCES",
            lambda known: {**known, **dict(zip(list(known)[4:6], list(known.values())[5:3:-1], strict=True))}),
    ),
    "upper and lower ids in trap registers are exchanged": (BORN, put(build, "lower_half", lambda _: build.upper_half)),
    "an id is shifted by nine bits": (BORN, put(initial_state, "_ID_BITS", lambda _: 9)),
    "ids of three directions stay in v0": (
        BORN,
        put(build, "mask_bits", lambda _: lambda isa, reg, bits: build.nothing(isa)),
    ),
    "a pair's upper half is its lower half": (
        BORN,
        put(
            initial_state,
            "part",
            lambda part: (lambda reg, offset,
                          dwords=1: part(reg, 0 if reg.dwords == 2 and reg.index < 16 else offset, dwords)),
        ),
    ),
    "nothing more is enabled": (
        ("born", "full"),
        put(apply, "enable_initial_state", lambda _: lambda target, before, kept, private=False: before),
    ),
    "one user register too many is counted": (("born", "full"), enlarged(user_sgpr_count=lambda count: count + 1)),
    "one user register too few is counted": (("born", "full"), enlarged(user_sgpr_count=lambda count: count - 1)),
    "a queue is enabled beside": (ALL, described(enable_sgpr_queue_ptr=lambda _: 1)),
    "all ids of work-items are enabled": (("marked", "full"), described(enable_vgpr_workitem_id=lambda _: 2)),
    "another id of work-groups is enabled": (("marked", "full"),
                                             described(enable_sgpr_workgroup_id_z=lambda was: 1 - was)),
    # private memory, and registers that are put aside
    "private memory begins at the application's": (FULL,
                                                   memory(start=lambda start: max(start - 16, 0) if start else 4)),
    "private memory begins at an odd byte": (FULL, memory(start=lambda start: start + 2)),
    "all registers are put aside in one place": (FULL, put(policies.Private, "cells", one_cell)),
    "places of registers overlap": (FULL, put(policies.Private, "cells", overlapping)),
    "private memory is not counted": (FULL, described(private_segment_fixed_size=lambda _: 0)),
    "half of private memory is counted": (FULL, described(private_segment_fixed_size=lambda size: size // 2)),
    "metadata has less private memory": (FULL, told(private_segment_fixed_size=lambda size: max(size - 4, 0))),
    "metadata has a stack that grows": (FULL, told(uses_dynamic_stack=lambda _: True)),
    "private memory is not enabled": (FULL, described(enable_private_segment=lambda _: 0)),
    "where private memory is, is not set": (FULL, put(initial_state, "scratch_base", lambda _: lambda *given: [])),
    "where private memory is lacks its carry": (
        FULL,
        put(initial_state, "scratch_base",
            lambda made: lambda *given: [inst for inst in made(*given) if inst.op.base != "S_ADDC_U32"]),
    ),
    "where private memory is lacks the wave's offset": (
        FULL,
        put(initial_state, "scratch_base",
            lambda made: lambda *given: [inst for inst in made(*given) if inst.op.base != "S_ADD_U32"]),
    ),
    "the resource lacks the wave's offset": (
        FULL,
        put(
            initial_state,
            "_private_resource",
            lambda _: (
                lambda isa, location, new, two: initial_state._fill_location(
                    isa,
                    location,
                    [initial_state.part(new[initial_state.Initial.PRIVATE_SEGMENT_BUFFER], k) for k in range(4)],
                )
            ),
        ),
    ),
    "the base of offsets is not set": (
        FULL,
        several(put(slots, "emit_base_setup", lambda _: lambda *given: []),
                put(spills, "emit_base_setup", lambda _: lambda *given: [])),
    ),
    "registers come back in the other order": (FULL, put(Spills, "around", wrong_order)),
    "registers are put aside in other lanes": (FULL, put(Spills, "put", under_own_exec)),
    "scalars come back from the next lane": (("full", "born", "marked"), lanes_by(1)),
    "registers that are put aside are never loaded": (
        FULL,
        put(build, "from_private", lambda _: lambda isa, *given: build.nothing(isa)),
    ),
    "registers are loaded with another cache policy": (
        FULL,
        put(build, "from_private", lambda made: lambda isa, *given: isa.with_field(made(isa, *given), "cpol", 1)),
    ),
    # descriptors
    "no vector registers are added": (
        ALL,
        put(resources, "grow_register_counts", lambda grown: lambda target, descriptor,
            used: grown(target, descriptor, RegSet.by_file(sgpr=used.sgpr))),
    ),
    "no scalar registers are added": (
        ALL,
        put(resources, "grow_register_counts", lambda grown: lambda target, descriptor,
            used: grown(target, descriptor, used - used.scalars)),
    ),
    "one granule of vector registers is missing": (ALL, described(granulated_workitem_vgpr_count=lambda n: n - 1)),
    "one granule of vector registers is too many": (ALL, described(granulated_workitem_vgpr_count=lambda n: n + 1)),
    "one granule of scalar registers is missing": (ALL,
                                                   described(granulated_wavefront_sgpr_count=lambda n: max(n - 1, 0))),
    "accumulators begin elsewhere": (ALL, described(granulated_accum_offset=lambda n: n + 1)),
    "LDS is smaller": (("marked",), described(group_segment_fixed_size=lambda size: size // 2)),
    "LDS is larger": (("marked",), described(group_segment_fixed_size=lambda size: size + 1024)),
    "arguments are fewer": (("marked",), described(kernarg_size=lambda size: size - 8)),
    "floats are rounded otherwise": (("marked",), described(float_round_mode_32=lambda _: 3)),
    "denormals are kept": (("marked",), described(float_denorm_mode_32=lambda _: 3)),
    "IEEE mode is another": (("marked",), described(enable_ieee_mode=lambda was: 1 - was)),
    "clamping is another": (("marked",), described(enable_dx10_clamp=lambda was: 1 - was)),
    "overflow of halves is another": (("marked",), described(fp16_ovfl=lambda was: 1 - was)),
    "waves have another size": (("marked",), described(enable_wavefront_size32=lambda was: 1 - was)),
    "work-groups are spread": (("marked",), described(wgp_mode=lambda was: 1 - was)),
    "memory is ordered otherwise": (("marked",), described(mem_ordered=lambda was: 1 - was)),
    "the priority is another": (("marked",), described(priority=lambda _: 2)),
    "exceptions are enabled": (("marked",), described(enable_exception_ieee_754_fp_division_by_zero=lambda _: 1)),
    "a trap handler is enabled": (("marked",), described(enable_trap_handler=lambda was: 1 - was)),
    "the entry is the next instruction": (
        ("marked",),
        put(apply, "NewKernel", lambda made: lambda *given, **named: replace(made(*given, **named), entry_offset=4)),
    ),
    "the entry is the next multiple of 256": (
        ("marked",),
        put(apply, "NewKernel", lambda made: lambda *given, **named: replace(made(*given, **named), entry_offset=256)),
    ),
    "metadata has fewer vector registers": (("marked", "everywhere"), told(vgpr_count=lambda n: 1)),
    "metadata has fewer scalar registers": (("marked", "everywhere"), told(sgpr_count=lambda n: 1)),
    "metadata has other arguments": (("marked",), told(args=lambda args: args[1:])),
    "metadata has less LDS": (("marked",), told(group_segment_fixed_size=lambda size: 0)),
    "metadata has another size of waves": (("marked",), told(wavefront_size=lambda size: 96 - size)),
    "metadata has larger work-groups": (("marked",), told(max_flat_workgroup_size=lambda size: 1024)),
    # what is linked
    "variables cannot be written": (("marked",), put(layout, "_WRITE", lambda flags: layout._READ)),
    "code lies where it cannot run": (("marked",), put(layout, "_EXECUTE", lambda flags: layout._READ)),
    "nothing lies behind code": (("marked",), put(layout, "_PREFETCH_BYTES", lambda _: 0)),
    "variables lie over each other": (
        ("marked",),
        put(
            layout,
            "_fill",
            lambda fill: (
                lambda name, type, flags, items, tail=0: (
                    lambda blob: (
                        replace(blob, offsets=dict.fromkeys(blob.offsets, 0)) if name == ".bss.luthier" else blob
                    )
                )(fill(name, type, flags, items, tail))
            ),
        ),
    ),
    "upper halves of distances lack their carry": (
        ("marked", "ways"),
        fixed(lambda fixup: replace(fixup, kind=FixupKind.REL32_LO) if fixup.kind is FixupKind.REL32_HI else fixup),
    ),
    "distances count from four bytes further": (("marked", "ways", "through"),
                                                fixed(lambda fixup: replace(fixup, base_offset=fixup.base_offset + 4))),
    "what code names is four bytes further": (("marked", "ways", "through"),
                                              fixed(lambda fixup: replace(fixup, addend=fixup.addend + 4))),
    "symbols of functions are shorter": (
        ("marked",),
        symbols(lambda symbol: replace(symbol, size=symbol.size - 4) if symbol.type is SymbolType.FUNC else symbol),
    ),
    "a byte of the original's code is another": (
        ("marked",),
        linked(
            lambda data, obj: data.__setitem__(
                obj.elf.load_at(obj.kernels[0].entry).offset
                + obj.kernels[0].entry
                - obj.elf.load_at(obj.kernels[0].entry).address,
                0x55,
            )
        ),
    ),
    "the object is for another target": (("marked",), linked(lambda data, obj: data.__setitem__(48, data[48] ^ 1))),
    "the last byte is cut off": (("marked",), linked(lambda data, obj: data.pop())),
}
