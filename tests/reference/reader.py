"""The reference reader: instructions one after the other, each by its row of isa.semantics.

In: a wave and instructions from address 0. Out: the wave after the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from luthier_py.isa import Inst
from luthier_py.isa.semantics import Dual, Lanes, Scalar, find_meaning
from luthier_py.isa.semantics.cdna4 import SwapRows, TransposedLoad
from luthier_py.isa.semantics.control import Action, Branch, CrossLane, Indexing
from luthier_py.isa.semantics.crossings import GatherInGroup, GatherInRow, RelativeMove
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from luthier_py.isa.semantics.images import ImageAtomic, ImageMove, ImageQuery
from luthier_py.isa.semantics.lds import (
    ExchangeTwo,
    FromLds,
    LaneCount,
    LoadToLds,
    LoadTwo,
    Permute,
    StoreFromLds,
    StoreTwo,
)
from luthier_py.isa.semantics.matrix import Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.meaning import Variants
from luthier_py.isa.semantics.memory import Atomic, Load, ScalarAtomic, ScalarLoad, ScalarStore, Store
from luthier_py.isa.semantics.scaled_floats import ManyConverted
from luthier_py.isa.semantics.transfers import BlockTransfer, LdsBroadcast, LdsCopy
from luthier_py.isa.semantics.wave_matrices import WaveMatrix, WaveMixedMatrix
from reference import crosslane, elements, images, memory, scalar, small, transfers, vector, wave_matrix
from reference.wave import Wave

_RULES = {
    Lanes: vector.vector, Dual: vector.dual, ManyConverted: small.many,
    Scalar: scalar.scalar, Branch: scalar.branch, Action: scalar.action,
    Indexing: scalar.relative, Load: memory.load, Store: memory.store, LoadTwo: memory.load_two,
    StoreTwo: memory.store_two, LoadToLds: transfers.load_to_lds, StoreFromLds: transfers.store_from_lds,
    TransposedLoad: transfers.transposed, Atomic: memory.atomic, ScalarLoad: memory.scalar_memory,
    ScalarStore: memory.scalar_memory, ScalarAtomic: memory.scalar_memory,
    ExchangeTwo: memory.exchange_two, LaneCount: memory.count_lanes,
    FromLds: memory.from_lds, GatherInRow: crosslane.gather, GatherInGroup: crosslane.gather_in_group,
    RelativeMove: vector.relative,
    CrossLane: crosslane.cross_lane, Permute: crosslane.permute, SwapRows: crosslane.swap, Matrix: crosslane.matrix,
    SparseMatrix: crosslane.sparse, MixedMatrix: crosslane.mixed, WaveMatrix: wave_matrix.wave_matrix,
    WaveMixedMatrix: wave_matrix.wave_mixed, FormatLoad: elements.load, FormatStore: elements.store,
    BlockTransfer: transfers.block, LdsCopy: transfers.copy, LdsBroadcast: transfers.broadcast,
    ImageMove: images.move, ImageAtomic: images.atomic, ImageQuery: images.query,
}  # fmt: skip


def rule(wave: Wave, inst: Inst, row: object) -> None:
    """One instruction by that row; ``wave.pc`` is behind it."""
    row = vector.in_situation(wave, inst, row) if isinstance(row, Variants) else row
    _RULES[type(row)](wave, inst, row)


def read(wave: Wave, code: Sequence[Inst], step: Callable[[Wave, Inst], None] | None = None) -> Wave:
    """The wave itself, after the code; branches stay inside it. ``step`` does an instruction, if not its meaning."""
    places, at = {}, 0
    for inst in code:
        places[at] = inst
        at += inst.size_bytes
    while wave.pc != at:
        inst = places[wave.pc]
        wave.pc += inst.size_bytes
        if step is None:
            rule(wave, inst, find_meaning(inst.op))
        else:
            step(wave, inst)
    return wave
