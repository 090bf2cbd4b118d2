"""Built-in intrinsics of device code, one file each: atomics, masks, lanes, bits, clocks."""

from .active_mask import active_mask
from .all_ import all_
from .any_ import any_
from .as_bits import as_bits
from .atomic_add import atomic_add
from .atomic_and import atomic_and
from .atomic_cas import atomic_cas
from .atomic_exchange import atomic_exchange
from .atomic_load import atomic_load
from .atomic_max import atomic_max
from .atomic_min import atomic_min
from .atomic_or import atomic_or
from .atomic_sub import atomic_sub
from .atomic_xor import atomic_xor
from .ballot import ballot
from .clock import clock
from .count_trailing_zeros import count_trailing_zeros
from .from_bits import from_bits
from .is_first_lane import is_first_lane
from .is_lds import is_lds
from .is_private import is_private
from .lane_id import lane_id
from .load_acquire import load_acquire
from .mbcnt import mbcnt
from .pause import pause
from .popcount import popcount
from .push import push
from .read_first_lane import read_first_lane
from .read_lane import read_lane
from .store_release import store_release
from .wave_size import wave_size

__all__ = [
    "active_mask", "all_", "any_", "as_bits", "atomic_add", "atomic_and", "atomic_cas", "atomic_exchange",
    "atomic_load", "atomic_max", "atomic_min", "atomic_or", "atomic_sub", "atomic_xor", "ballot", "clock",
    "count_trailing_zeros", "from_bits", "is_first_lane", "is_lds", "is_private", "lane_id", "load_acquire", "mbcnt",
    "pause", "popcount", "push", "read_first_lane", "read_lane", "store_release", "wave_size",
]
