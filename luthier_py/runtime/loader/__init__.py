"""Programs that a program starts run by the same loader as it: a C library for LD_PRELOAD."""

from luthier_py.runtime.loader.build import loader_library

__all__ = ["loader_library"]
