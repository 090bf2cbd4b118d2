"""Programs that a program starts run by the same loader as it: a C library for LD_PRELOAD."""

from luthier_py.host.loader.build import loader_library
from luthier_py.host.loader.command import command_by_loader

__all__ = ["command_by_loader", "loader_library"]
