"""Which tests are about which file of the rooms that mutations are of."""

from __future__ import annotations

NEAREST = {
    "program/analysis/liveness.py": (
        "unit/program/analysis/test_liveness.py", "unit/program/analysis/test_meetings.py"),
    "program/analysis/effects.py": ("unit/program/analysis/test_liveness.py", "unit/program/analysis/test_meetings.py"),
    "program/analysis/waits.py": ("unit/program/analysis/test_waits.py", "unit/program/analysis/test_meetings.py"),
    "program/analysis/execution.py": (
        "unit/program/analysis/test_execution.py", "unit/program/analysis/test_meetings.py"),
    "program/analysis/lanes.py": (
        "unit/rewrite/inject/test_foreign_masks.py", "unit/program/analysis/test_liveness.py",
        "unit/program/analysis/test_meetings.py"),
    "program/analysis/cfg.py": ("unit/program/analysis/test_meetings.py", "unit/program/analysis/test_execution.py"),
    "program/analysis/registers.py": (
        "unit/program/analysis/test_execution.py", "unit/program/analysis/test_meetings.py"),
    "program/analysis/float_mode.py": (
        "unit/program/analysis/test_execution.py", "unit/rewrite/inject/test_float_mode.py"),
    "program/analysis/regions.py": ("unit/program/analysis/test_regions.py",),
    "program/analysis/sharing.py": ("unit/rewrite/inject/test_resources.py",),
    "program/analysis/facts.py": (
        "unit/rewrite/inject/test_edges.py", "unit/proof/test_proof_edges.py", "unit/rewrite/inject/test_instead.py"),
    "rewrite/inject/allocate.py": ("unit/rewrite/inject/test_allocate.py",),
    "rewrite/inject/clauses.py": ("golden/test_golden_passes.py", "unit/rewrite/inject/test_wait_states.py"),
    "rewrite/inject/relax.py": ("unit/rewrite/inject/test_relax.py",),
    "rewrite/inject/resources.py": (
        "unit/rewrite/inject/test_resources.py", "unit/rewrite/inject/test_inject_edges.py"),
    "rewrite/inject/call.py": tuple(
        f"unit/rewrite/inject/test_{name}.py"
        for name in ("instead", "call", "float_mode", "scalars_in_lanes", "inject_edges")),
    "rewrite/inject/inline_calls.py": ("golden/test_golden_passes.py", "unit/rewrite/inject/test_edges.py"),
    "rewrite/inject/sites.py": ("unit/rewrite/inject/test_inject_edges.py",),
    "rewrite/inject/lookup.py": ("unit/rewrite/pipeline/test_pipeline.py", "unit/proof/test_proof_refusals.py"),
    "rewrite/inject/prologue.py": ("golden/test_golden_passes.py", "unit/rewrite/inject/test_inject_edges.py"),
    "rewrite/jit/called.py": ("unit/rewrite/jit/test_called.py", "unit/rewrite/inject/test_stacks_of_hooks.py"),
    "rewrite/inject/spills.py": ("unit/rewrite/inject/test_spills.py",),
    "rewrite/inject/slots.py": ("unit/rewrite/inject/test_spills.py", "unit/rewrite/inject/test_homes_in_slots.py"),
    "rewrite/inject/policies.py": (
        "unit/rewrite/inject/test_resources.py",
        "unit/rewrite/inject/test_homes_in_slots.py", "unit/rewrite/inject/test_spills.py",
        "unit/rewrite/inject/test_inject_edges.py"),
    "rewrite/inject/initial_state.py": (
        "unit/rewrite/inject/test_initial_state.py", "unit/rewrite/inject/test_private_buffers.py"),
    "rewrite/inject/clone.py": ("unit/rewrite/inject/test_clone.py", "unit/rewrite/inject/test_instead.py"),
    "rewrite/inject/wait_states.py": ("unit/rewrite/inject/test_wait_states.py", "unit/proof/test_proof_instead.py"),
    "binary/link/fixups.py": ("unit/binary/link/test_bindings.py", "unit/binary/link/test_link.py"),
    "binary/link/layout.py": ("unit/binary/link/test_loading.py", "unit/binary/link/test_link.py"),
    "binary/link/tables.py": ("unit/binary/link/test_tables.py",),
    "binary/link/writer.py": ("unit/binary/link/test_loading.py", "unit/binary/link/test_link.py"),
    "binary/link/validate.py": ("unit/binary/link/test_link.py",),
    "binary/link/grow.py": ("unit/binary/link/test_loading.py",),
    "proof/hazard_patterns.py": ("unit/proof/test_distances.py",),
    "proof/dispatch.py": ("unit/proof/test_dispatch.py",),
    "proof/payload_lanes.py": ("unit/proof/test_payloads.py",),
    "proof/payload_memory.py": ("unit/proof/test_payloads.py", "unit/rewrite/inject/test_private_buffers.py"),
    "proof/float_modes.py": ("unit/proof/test_float_modes.py", "unit/proof/test_wrong_calls.py"),
    "proof/given.py": ("unit/proof/test_given.py",),
    "proof/graph.py": ("unit/proof/test_application_whole.py",),
    "proof/insertions.py": (
        "unit/rewrite/inject/test_foreign_masks.py", "unit/proof/test_runs.py", "unit/proof/test_hooks_left_out.py",
        "unit/proof/test_proof_refusals.py",
        "unit/proof/test_proof_edges.py"),
    "proof/runs.py": (
        "unit/proof/test_spilled.py", "unit/rewrite/inject/test_private_buffers.py",
        "unit/proof/test_runs.py", "unit/proof/test_hooks_left_out.py", "unit/proof/test_proof_refusals.py"),
    "proof/now.py": (
        "unit/proof/test_spilled.py",
        "unit/proof/test_runs.py", "unit/proof/test_hooks_left_out.py", "unit/proof/test_proof_refusals.py"),
    "proof/vectors.py": ("unit/proof/test_runs.py", "unit/proof/test_spilled.py"),
    "proof/masks.py": ("unit/proof/test_half_masks.py", "unit/proof/test_runs.py"),
    "proof/initial_state.py": ("unit/rewrite/inject/test_initial_state.py",),
    "proof/additions.py": ("unit/proof/test_additions.py", "unit/proof/test_objects.py"),
    "proof/descriptors.py": (
        "unit/proof/test_private_descriptors.py", "unit/proof/test_additions.py", "unit/proof/test_objects.py"),
    "proof/objects.py": ("unit/proof/test_objects.py", "unit/proof/test_additions.py"),
    "proof/instead.py": ("unit/proof/test_proof_instead.py",),
    "proof/application.py": ("unit/proof/test_application_whole.py", "unit/proof/test_proof_instead.py"),
    "proof/linked.py": ("unit/proof/test_distances.py", "unit/proof/test_proof_instead.py"),
    "proof/payloads.py": ("unit/proof/test_payloads.py", "unit/proof/test_hooks_left_out.py"),
    "proof/pending.py": ("unit/proof/test_runs.py",),
    "rewrite/claim_check.py": ("unit/rewrite/claim_check/test_claim_check.py",),
}
"""Files of tests that are about a file, below tests."""
