"""Program to :class:`Facts`: liveness by lanes, pending loads, EXEC, registers. Read-only."""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.program.analysis.acyclic_paths import Adding, Arc, Paths, paths
    from luthier_py.program.analysis.definitions import Definitions, Reaching
    from luthier_py.program.analysis.edges import Edge, edges_of, group_edges_by_target
    from luthier_py.program.analysis.facts import Facts, analyse, live_notes
    from luthier_py.program.analysis.float_mode import PLAIN_MODE, depends_on_mode, fields_unlike_plain
    from luthier_py.program.analysis.frames import Frame, Frames, source_frames
    from luthier_py.program.analysis.graphs import block_graph, call_graph, post_dominators
    from luthier_py.program.analysis.initial_values import GivenLaunch
    from luthier_py.program.analysis.launch_invariant import LaunchInvariants
    from luthier_py.program.analysis.line_range import LineRange, line_ranges
    from luthier_py.program.analysis.lines import SourceLine, SourceLines, line_order, source_lines
    from luthier_py.program.analysis.loops import Loop, dominators, innermost_loops, line_of_loop, loops_of
    from luthier_py.program.analysis.missing_wait import MissingWait, missing_waits
    from luthier_py.program.analysis.private import with_private_memory
    from luthier_py.program.analysis.regions import (
        OUTSIDE,
        Flow,
        Spanning,
        build_spanning_tree,
        estimate_frequencies,
        find_cyclic_pieces,
    )
    from luthier_py.program.analysis.registers import collect_accessed_registers, initial_registers
    from luthier_py.program.analysis.sharing import group_sharing_kernels
    from luthier_py.program.analysis.static_counts import StaticCounts, count_statically
    from luthier_py.program.analysis.steps import Steps, steps_of
    from luthier_py.program.analysis.trips import trip_count
    from luthier_py.program.analysis.waits import Pending

__all__ = ["OUTSIDE", "PLAIN_MODE", "Adding", "Arc", "Definitions", "Edge", "Facts", "Flow", "LaunchInvariants",
           "StaticCounts", "Frame", "Frames", "GivenLaunch", "LineRange", "Loop", "MissingWait", "Paths", "Pending",
           "Reaching", "SourceLine", "SourceLines", "Spanning", "Steps", "analyse", "block_graph", "call_graph",
           "group_edges_by_target", "depends_on_mode", "dominators", "edges_of", "estimate_frequencies",
           "fields_unlike_plain", "count_statically", "find_cyclic_pieces", "initial_registers", "innermost_loops",
           "line_of_loop", "line_order", "line_ranges", "live_notes", "loops_of", "missing_waits", "paths",
           "post_dominators", "group_sharing_kernels", "source_frames", "source_lines", "build_spanning_tree",
           "steps_of", "collect_accessed_registers", "trip_count", "with_private_memory"]
__getattr__ = make_lazy_loader(__name__, {
    "definitions": "Definitions Reaching",
    "edges": "Edge edges_of group_edges_by_target",
    "facts": "Facts analyse live_notes",
    "float_mode": "PLAIN_MODE depends_on_mode fields_unlike_plain",
    "frames": "Frame Frames source_frames",
    "graphs": "block_graph call_graph post_dominators",
    "initial_values": "GivenLaunch",
    "launch_invariant": "LaunchInvariants",
    "line_range": "LineRange line_ranges",
    "lines": "SourceLine SourceLines line_order source_lines",
    "loops": "Loop dominators innermost_loops line_of_loop loops_of",
    "missing_wait": "MissingWait missing_waits",
    "acyclic_paths": "Adding Arc Paths paths",
    "private": "with_private_memory",
    "regions": "OUTSIDE Flow Spanning build_spanning_tree estimate_frequencies find_cyclic_pieces",
    "registers": "collect_accessed_registers initial_registers",
    "sharing": "group_sharing_kernels",
    "static_counts": "StaticCounts count_statically",
    "steps": "Steps steps_of",
    "trips": "trip_count",
    "waits": "Pending",
})  # fmt: skip
