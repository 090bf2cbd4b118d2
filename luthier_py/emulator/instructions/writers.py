"""Who writes the code of an instruction, by what it means.

In: nothing. Out: for each kind of row of isa.semantics a function (access, instruction, row). What ends blocks, or
changes how others are translated, is not here but in translate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from luthier_py.emulator.instructions.access import AccessCode
from luthier_py.emulator.instructions.crosslane import cross_lane, gather_in_row, permute, swap_rows
from luthier_py.emulator.instructions.indexing import index_mode
from luthier_py.emulator.instructions.lane_groups import gather_in_group
from luthier_py.emulator.instructions.many import many
from luthier_py.emulator.instructions.matrix import emit_mixed_matrix, matrix, sparse
from luthier_py.emulator.instructions.memory_code import MEMORY_ROWS, memory
from luthier_py.emulator.instructions.scalar_code import scalar
from luthier_py.emulator.instructions.vector_code import dual, lanes, relative_move
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.instructions.wave_matrix import wave_matrix, wave_mixed
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.semantics.cdna4 import SwapRows
from luthier_py.isa.semantics.control import CrossLane, Indexing
from luthier_py.isa.semantics.crossings import GatherInGroup, GatherInRow, RelativeMove
from luthier_py.isa.semantics.lds import Permute
from luthier_py.isa.semantics.matrix import Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.meaning import Dual, Lanes, Scalar
from luthier_py.isa.semantics.scaled_floats import ManyConverted
from luthier_py.isa.semantics.wave_matrices import WaveMatrix, WaveMixedMatrix

Writer = Callable[[AccessCode, Inst, Any], None]


def _in_registers(write: Callable[[WaveCode, Inst, Any], None]) -> Writer:
    return lambda access, inst, row: write(access.w, inst, row)


_REGISTERS: dict[type, Callable[[WaveCode, Inst, Any], None]] = {
    Lanes: lanes, Dual: dual, Scalar: scalar, ManyConverted: many, RelativeMove: relative_move, Indexing: index_mode,
    CrossLane: cross_lane, Permute: permute, SwapRows: swap_rows, GatherInRow: gather_in_row,
    Matrix: matrix, MixedMatrix: emit_mixed_matrix, SparseMatrix: sparse, WaveMatrix: wave_matrix,
    WaveMixedMatrix: wave_mixed,
}  # fmt: skip

WRITERS: dict[type, Writer] = {
    **{kind: _in_registers(write) for kind, write in _REGISTERS.items()}, GatherInGroup: gather_in_group,
    **dict.fromkeys(MEMORY_ROWS, memory)}
