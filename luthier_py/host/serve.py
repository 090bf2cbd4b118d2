"""Entry of a worker process: answers one program until that program ends, however it ends.

In: a socket on descriptor 3; on descriptor 4 the arena of a device, or how many launches a tool's program makes.
Invariant: no failure here reaches the program except as a status, with one line on stderr.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import socket
import sys
from contextlib import suppress
from functools import partial
from typing import NoReturn, Protocol

from luthier_py.base.errors import Invalid, LuthierError
from luthier_py.base.late_modules import limit_threads
from luthier_py.host.native import protocol
from luthier_py.host.native.protocol import Message
from luthier_py.host.worker.error_boundary import Refused, run_guarded
from luthier_py.host.worker.watchdog import ProgramWatch
from luthier_py.host.worker.wire import Request, Wire

SOCKET_FD = 3
FIRST_FOREIGN_FD = 5  # open files of the program that happen to be inherited from here on are none of ours

LARGE_BYTES = 1 << 20  # memory from this size on is fresh pages, so that zeroing what a launch takes costs nothing
_MMAP_THRESHOLD = -3
SWITCH_SECONDS = 1e-4  # short launches change threads often


class Service(Protocol):
    """What a worker does for its program: the emulated device, the tool, the driver (kfd), or the compiler."""

    def answer(self, request: Request) -> bytes | None:
        """The reply's content; None for a message that has no reply."""
        ...

    @property
    def over(self) -> bool:
        """Whether it cannot continue, and so the program must not either."""
        ...

    def handle_exit(self) -> None:
        """The program is gone."""
        ...


def main(service: str) -> NoReturn:
    """Serve until the program's end of the socket closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_threads()
    with suppress(OSError):
        os.dup2(2, 1)  # stdout is the program's: what a tool prints is sent to stderr
    sys.stdout = sys.stderr
    sys.setswitchinterval(SWITCH_SECONDS)
    if hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
    os.closerange(FIRST_FOREIGN_FD, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 1 << 16 else 1 << 16)
    wire = wire_of(service, socket.socket(fileno=SOCKET_FD))
    watch = ProgramWatch(wire.program)
    run_guarded(partial(_serve_all, wire, service))
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    if service == "tool" or "LUTHIER_TOOL" not in os.environ:  # the tool's worker may still write to it
        watch.remove_folder()
    os._exit(0)  # a kernel may be running in another thread


def _serve_all(wire: Wire, name: str) -> None:
    opened = run_guarded(partial(open_service, name, wire))
    gc.freeze()
    gc.enable()  # the boot of wire.c has turned it off
    with suppress(ConnectionError):
        if isinstance(opened, Exception):
            refuse(wire)
        else:
            serve(wire, opened)


def wire_of(service: str, connection: socket.socket) -> Wire:
    """The connection to the program; a tool's takes reports from shared memory as well."""
    if service != "tool":
        return Wire(connection)
    from luthier_py.host.worker.instrument.reported import ToolWire

    return ToolWire(connection)


def open_service(name: str, wire: Wire) -> Service:
    """``wire``: to the process that it is for."""
    if name == "device":
        from luthier_py.host.worker.device.emulated_device import DeviceService

        return DeviceService(wire.program)
    if name == "tool":
        from luthier_py.host.worker.instrument.instrumentation import ToolService
        from luthier_py.host.worker.instrument.reported import ToolWire
        from luthier_py.host.worker.instrument.tool_run import VERDICT
        from luthier_py.rewrite.tool.chosen.selection import expand_placeholders

        assert isinstance(wire, ToolWire)

        sys.path += [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(path)]
        if path := os.environ.get(VERDICT):
            os.environ[VERDICT] = expand_placeholders(path, wire.program)
        return ToolService(wire)
    if name == "kfd":
        from luthier_py.host.kfd.driver import DriverService

        return DriverService(wire.program)
    if name == "compiler":
        from luthier_py.host.hiprtc.compiler import CompilerService

        return CompilerService()
    raise Invalid(f"there is no worker service {name}")


def serve(wire: Wire, service: Service) -> None:
    """Answer until the service is over or the program is gone. Commands (from FIRST_COMMAND on) get no reply, also when
    they fail; all other requests get one."""
    try:
        while not service.over and (request := wire.receive()) is not None:
            answer = run_guarded(partial(service.answer, request))
            if request.code < protocol.FIRST_COMMAND:
                wire.reply(*_reply(answer, request))
    finally:
        service.handle_exit()


def _reply(answer: bytes | None | Exception, request: Request) -> tuple[int, bytes]:
    return (status_of(answer, request), b"") if isinstance(answer, Exception) else (protocol.STATUS_OK, answer or b"")


def status_of(error: Exception, request: Request) -> int:
    """The hipError_t that the program gets for an exception. One that is no LuthierError, a mistake of ours or of a
    tool, is STATUS_UNKNOWN."""
    if isinstance(error, Refused):
        return error.status
    if not isinstance(error, LuthierError):
        return protocol.STATUS_UNKNOWN
    return protocol.STATUS_INVALID_IMAGE if request.code == Message.LOAD else protocol.STATUS_INVALID_VALUE


def refuse(wire: Wire) -> None:
    """There is no device: say so to the first question."""
    if wire.receive() is not None:
        wire.reply(protocol.STATUS_NO_DEVICE)
