"""An emulated GPU: generated host code runs whole waves; see translate for how."""

from typing import TYPE_CHECKING

from luthier_py.base.exports import make_lazy_loader

if TYPE_CHECKING:
    from luthier_py.emulator.devices.emulator_device import EmulatorDevice
    from luthier_py.emulator.devices.packet_device import CodeNames, PacketDevice
    from luthier_py.emulator.options.launch_options import LaunchOptions
    from luthier_py.emulator.waves.cycle_account import LaunchCycles
    from luthier_py.emulator.waves.profile import LaunchProfile

__all__ = ["CodeNames", "EmulatorDevice", "LaunchCycles", "LaunchOptions", "LaunchProfile", "PacketDevice"]
__getattr__ = make_lazy_loader(__name__, {
    "waves.cycle_account": "LaunchCycles",
    "devices.emulator_device": "EmulatorDevice",
    "options.launch_options": "LaunchOptions",
    "waves.profile": "LaunchProfile",
    "devices.packet_device": "CodeNames PacketDevice",
})  # fmt: skip
