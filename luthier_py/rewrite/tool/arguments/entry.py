"""What a wave starts with: values that the hardware or the dispatch put into its first registers.

In: nothing. Out: names that a tool passes to hooks as arguments, at any place of a kernel. Invariant: such a value is
one for the wave, and what it is at any place is what it was when the wave began, whatever became of its registers.
"""

from __future__ import annotations

from enum import Enum

from luthier_py.rewrite.tool.hooks.types import U32, U64, Scalar


class Entry(Enum):
    """A value of a wave's initial state (LLVM's AMDGPU usage, "Initial Kernel Execution State")."""

    KERNARG_PTR = "kernarg_ptr"
    """Address of the kernel's arguments."""
    DISPATCH_PTR = "dispatch_ptr"
    """Address of the AQL packet that dispatched it: sizes of grid and work-group."""
    QUEUE_PTR = "queue_ptr"
    """Address of the queue that the packet was in."""
    DISPATCH_ID = "dispatch_id"
    """Number of the packet in its queue."""
    WORKGROUP_ID_X = "workgroup_id_x"
    WORKGROUP_ID_Y = "workgroup_id_y"
    WORKGROUP_ID_Z = "workgroup_id_z"
    FIRST_WORKITEM = "first_workitem"
    """Ids, within the work-group, of the work-item in the wave's lane 0: x | y << 10 | z << 20."""

    @property
    def type(self) -> Scalar:
        """The type of the hook's parameter that takes it."""
        return U64 if self in _WIDE else U32

    @property
    def is_pointer(self) -> bool:
        """Whether a parameter that is a pointer, to anything, can take it."""
        return self in (Entry.KERNARG_PTR, Entry.DISPATCH_PTR, Entry.QUEUE_PTR)

    def __str__(self) -> str:
        return f"Entry.{self.name}"


_WIDE = frozenset({Entry.KERNARG_PTR, Entry.DISPATCH_PTR, Entry.QUEUE_PTR, Entry.DISPATCH_ID})
