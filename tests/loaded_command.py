"""`luthier` as a user types it, without the time that its modules take to load: one process has loaded them, and forks
for each command.

In: arguments, an environment, a folder. Out: exit code and output, as subprocess.run has them: until all who inherited
the output have closed it. Invariant: commands know nothing of each other; the server ends with the process of tests.
What a start of Python itself is to show (options before modules load, signals of a terminal) is not for this module.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path

MOST_BYTES = 1 << 18  # of a request
LOADER = "LD_LIBRARY_PATH", "LD_PRELOAD"  # read when a program starts, so one that has started cannot obey them
SERVER = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from {__name__} import serve; serve()"


def run_luthier(
    *arguments: str | Path, environment: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """``luthier ARGUMENTS`` in exactly this environment."""
    words = list(map(str, arguments))
    if any(environment.get(name) != os.environ.get(name) for name in LOADER):
        script = [sys.executable, "-c", "from luthier_py.cli import main; main()", *words]
        return subprocess.run(script, env=dict(environment), cwd=cwd, capture_output=True, text=True)
    request = json.dumps([words, dict(environment), str(cwd or Path.cwd())]).encode()
    assert len(request) < MOST_BYTES
    server, texts, readers = server_of(os.getpid())[0], ["", ""], []
    ends = [os.pipe(), os.pipe()]
    socket.send_fds(server, [request], [writing for _, writing in ends])
    for at, (reading, writing) in enumerate(ends):
        os.close(writing)
        readers.append(threading.Thread(target=read_all, args=(reading, texts, at)))
        readers[-1].start()
    code = int(server.recv(64))
    for reader in readers:
        reader.join()
    return subprocess.CompletedProcess(words, code, *texts)


def read_all(descriptor: int, texts: list[str], at: int) -> None:
    with open(descriptor) as file:
        texts[at] = file.read()


@cache
def server_of(process: int) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Of this process of tests; it ends when the socket closes."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for side in (ours, its):
        side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MOST_BYTES)
    with its:
        return ours, subprocess.Popen([sys.executable, "-c", SERVER, str(its.fileno())], pass_fds=[its.fileno()])


def serve() -> None:
    """One command after the other."""
    import luthier_py.features.exec.execute
    import luthier_py.features.run.command
    import luthier_py.rewrite.tool  # noqa: F401  (loaded for all commands)

    server = socket.socket(fileno=int(sys.argv[1]))
    server.set_inheritable(False)
    while True:
        request, outputs, _, _ = socket.recv_fds(server, MOST_BYTES, 2)
        if not request:
            return
        child = os.fork()
        if not child:
            server.close()
            perform(*json.loads(request), outputs)
        for output in outputs:
            os.close(output)
        server.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def perform(words: list[str], environment: dict[str, str], folder: str, outputs: list[int]) -> None:
    """In the child, which ends here."""
    import atexit

    from luthier_py.cli import main

    for number, output in enumerate(outputs, 1):
        os.dup2(output, number)
        os.close(output)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *words]
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
