"""What type checkers and editors know of the built-in intrinsics: how device code calls them.

In device code types are exact and less is accepted (docs/device-python.md); here ``u32`` and its like are ``int``.
A test compares this with the intrinsics themselves.
"""

from typing import TypeVar

from luthier_py.rewrite.tool import bool_, channel, ptr, u32, u64

T = TypeVar("T")
R = TypeVar("R")

def active_mask() -> u64:
    """u64 with the bits of the active lanes."""

def all_(condition: int | float) -> bool_:
    """bool_: whether ``condition`` holds in all active lanes."""

def any_(condition: int | float) -> bool_:
    """bool_: whether ``condition`` holds in at least one active lane."""

def as_bits(x: float) -> int:
    """The bits of a float as an unsigned integer of its width."""

def atomic_add(pointer: ptr[int], value: int) -> int:
    """``*pointer += value`` at once; yields the old value."""

def atomic_and(pointer: ptr[int], value: int) -> int:
    """``*pointer &= value`` at once; yields the old value."""

def atomic_cas(pointer: ptr[int], expected: int, value: int) -> int:
    """``if *pointer == expected: *pointer = value`` at once; yields the old value."""

def atomic_exchange(pointer: ptr[int], value: int) -> int:
    """``*pointer = value`` at once; yields the old value."""

def atomic_load(pointer: ptr[int]) -> int:
    """``*pointer`` as the whole GPU sees it, relaxed."""

def atomic_max(pointer: ptr[int], value: int) -> int:
    """``*pointer = max(*pointer, value)`` at once; yields the old value."""

def atomic_min(pointer: ptr[int], value: int) -> int:
    """``*pointer = min(*pointer, value)`` at once; yields the old value."""

def atomic_or(pointer: ptr[int], value: int) -> int:
    """``*pointer |= value`` at once; yields the old value."""

def atomic_sub(pointer: ptr[int], value: int) -> int:
    """``*pointer -= value`` at once; yields the old value."""

def atomic_xor(pointer: ptr[int], value: int) -> int:
    """``*pointer ^= value`` at once; yields the old value."""

def ballot(condition: int | float) -> u64:
    """u64 with the bits of the active lanes whose ``condition`` holds."""

def clock() -> u64:
    """u64: cycles, as s_memtime (or the target's own cycle counter) counts them."""

def count_trailing_zeros(x: int) -> u32:
    """u32: the number of the lowest one bit of an integer; its width when there is none."""

def from_bits(x: int) -> float:
    """The f16 with the bits of a u16, the f32 with those of a u32, the f64 with those of a u64."""

def is_first_lane() -> bool_:
    """bool_: true in one lane, the lowest that is active."""

def is_lds(address: int | ptr[T]) -> bool_:
    """bool_: whether a flat address is one of the work-group's LDS; its low 32 bits are the byte there."""

def is_private(address: int | ptr[T]) -> bool_:
    """bool_: whether a flat address is one of a lane's private memory."""

def lane_id() -> u32:
    """u32: the number of this lane, from 0."""

def load_acquire(pointer: ptr[int]) -> int:
    """``*pointer`` as the whole system sees it; what its writer wrote before is seen after."""

def mbcnt(mask: u64) -> u32:
    """u32: how many bits of a u64 ``mask`` belong to lanes below this one."""

def pause() -> None:
    """The wave sleeps for some hundred cycles: for loops that wait for others."""

def popcount(x: int) -> u32:
    """u32: how many bits of an integer are one."""

def push(channel: channel[R], *fields: int | float) -> None:
    """Sends a record with these fields, in their order: one for each active lane, or one for the wave."""

def read_first_lane(x: T) -> T:
    """``x`` of the first active lane (of lane 0 when none is active)."""

def read_lane(x: T, lane: u32) -> T:
    """``x`` of the lane with a number, which is the same in all lanes; active or not."""

def store_release(pointer: ptr[int], value: int) -> None:
    """``*pointer = value`` for the whole system; who sees it sees all that was written before."""

def wave_size() -> u32:
    """u32: 64 or 32, known when the hook is compiled."""
