"""The worker's native code: what it does for each command, and what Python cannot do in one step. C sources."""

from luthier_py.host.worker.native.build import MOST_KNOWN, Pause, load_worker_library, worker_library

__all__ = ["MOST_KNOWN", "Pause", "load_worker_library", "worker_library"]
