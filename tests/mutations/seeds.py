"""Changes of our own source of which only a test of the nightly tier knows, each in another room.

In: nothing. Out: SEEDED. Invariant: ``before`` is once in its file; ``known_by`` takes too long for `make test` to run
it always, and fails under the change.
"""

from __future__ import annotations

from typing import NamedTuple


class Seed(NamedTuple):
    """``file``: below the root; ``known_by``: a test."""

    file: str
    before: str
    after: str
    known_by: str


SEEDED: tuple[Seed, ...] = (
    Seed("luthier_py/features/replay/report.py", "executed - (of_tool or 0)",
         "executed + (of_tool or 0)",
         "tests/unit/cli/test_replay_commands.py::test_a_launch_again_under_a_tool_and_checks"),
    Seed("luthier_py/emulator/memory/touched.py", "-(-last // LINE_BYTES)",
         "last // LINE_BYTES",
         "tests/unit/host/worker/test_recording.py::test_programs[pointers-gfx1201_0]"),
    Seed("luthier_py/features/causal/bench.py", "cost.numerator, cost.denominator) if",
         "cost.denominator, cost.denominator) if",
         "tests/tools/test_causal_profile.py::test_a_hot_line_that_nobody_waits_for"),
    Seed("tools/call_graph/contexts.py", "context - entered[-1].first",
         "context",
         "tests/tools/test_call_graph.py::test_calls_on_targets[chains-target0]"),
    Seed("luthier_py/features/settings/contents.py", "files += neighbours(path.resolve().parent)",
         "files += []",
         "tests/unit/features/test_study.py::test_a_tool_is_its_neighbours_too"),
    Seed("luthier_py/host/hsa/packets.c", "groups(dispatch->items[i], dispatch->block[i])",
         "dispatch->items[i]",
         "tests/unit/host/stack/test_rocm_channels.py::test_launch_parameters[hsa]"),
    Seed("luthier_py/host/roctx/roctx.c", ".kind = TRACED_STOP, .number = id}",
         ".kind = TRACED_STOP, .number = id + 1}",
         "tests/unit/host/worker/test_traced_programs.py::test_ranges_and_marks_are_tracks_of_threads"),
    Seed("luthier_py/features/study/summary.py", 'one["output_sha256"] for one in ended}) > 1',
         'one["output_sha256"] for one in ended}) > 2',
         "tests/unit/features/test_study.py::test_repeats_that_differ_are_told"),
    Seed("luthier_py/features/faults/judging.py", "if every_lane and fault.model not in ONCE else",
         "if fault.model not in ONCE else",
         "tests/tools/test_fault_campaigns.py::test_effects_are_those_of_a_model[45]"),
    Seed("luthier_py/host/worker/device/recording.py", "number = self._launches - 1",
         "number = self._launches",
         "tests/unit/host/worker/test_recording.py::test_some_of_the_launches"),
    Seed("luthier_py/features/budget/command.py", "if verdict.kept else",
         "if verdict else",
         "tests/docs/test_comparing_page.py::test_budgets"),
)  # fmt: skip
