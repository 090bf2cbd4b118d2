"""Waves of a launch by number: each keeps its own, and what records say of it is read.

In: kernels; numbers and masks of records. Out: a number in a wave variable; work-group, wave and lanes. Invariant:
numbers are those of ``wave_in_launch``: work-groups at the edge of a grid have as many as all others.
"""

from __future__ import annotations

from luthier_py.rewrite.tool.arguments.launch_values import wave_in_launch
from luthier_py.rewrite.tool.base import LaunchResult
from luthier_py.rewrite.tool.hooks.author_types import u32
from luthier_py.rewrite.tool.hooks.hook import hook
from luthier_py.rewrite.tool.mutator import Mutator
from luthier_py.rewrite.tool.variables import WaveVariable


@hook(lanes="one")
def _keep(number: u32) -> u32:
    return number


def number_waves(m: Mutator, wave: WaveVariable) -> None:
    """Each wave has its number in ``wave``, a u32, from its begin on."""
    for kernel in m.kernels:
        m.at_entry(kernel, _keep, wave_in_launch(), into=wave)


def waves_in_group(launch: LaunchResult, wave_size: int) -> int:
    """The number of waves of a work-group that is not at the edge."""
    return -(-launch.workitems // wave_size)


def group_and_wave(launch: LaunchResult, wave_size: int, number: int) -> tuple[int, int]:
    """The work-group that a wave is of, and its number in there."""
    return divmod(number, waves_in_group(launch, wave_size))


def lanes_of(mask: int) -> list[int]:
    """The lanes of a mask, as records have it."""
    return [lane for lane in range(mask.bit_length()) if mask >> lane & 1]
