"""Entry of a worker process: answers one program until that program ends, however it ends.

In: a socket on descriptor 3, for a device also the arena on descriptor 4. Invariant: nothing that goes wrong here
reaches the program except as a status, with one line on stderr.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import NoReturn, Protocol

from luthier_py.errors import Invalid, LuthierError
from luthier_py.runtime.hip import protocol
from luthier_py.worker.wire import Request, Wire, say

SOCKET_FD = 3
FIRST_FOREIGN_FD = 5  # open files of the program that happen to be inherited from here on are none of ours


class Service(Protocol):
    def answer(self, request: Request) -> bytes | None:
        """The reply's content; None for a message that has no reply."""
        ...


def main(service: str) -> NoReturn:
    """Serve until the program's end of the socket closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.closerange(FIRST_FOREIGN_FD, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 1 << 16 else 1 << 16)
    wire = Wire(socket.socket(fileno=SOCKET_FD))
    try:
        serve(wire, open_service(service))
    except (ConnectionError, BrokenPipeError):
        pass
    except LuthierError as error:
        say(error)
        refuse(wire)
    finally:
        sys.stdout.flush()
        os._exit(0)  # a kernel may be running in another thread


def open_service(name: str) -> Service:
    if name == "device":
        from luthier_py.worker.device import DeviceService

        return DeviceService()
    raise Invalid(f"there is no worker service {name}")


def serve(wire: Wire, service: Service) -> None:
    while (request := wire.receive()) is not None:
        try:
            content = service.answer(request)
        except LuthierError as error:
            say(error)
            wire.reply(status_of(error))
        else:
            if content is not None:
                wire.reply(protocol.STATUS_OK, content)


def refuse(wire: Wire) -> None:
    """There is no device: say so to the first question."""
    if wire.receive() is not None:
        wire.reply(protocol.STATUS_NO_DEVICE)


def status_of(error: LuthierError) -> int:
    status = getattr(error, "status", None)
    return status if isinstance(status, int) else protocol.STATUS_INVALID_VALUE
