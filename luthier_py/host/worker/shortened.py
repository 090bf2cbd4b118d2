"""Files of the program that are mapped here and become shorter: kernels then find zeros where nothing is left of them,
and the device fails, instead of this process ending by SIGBUS.

In: where files are mapped. Out: the first address at which there was nothing. Invariant: a SIGBUS anywhere else ends
the process, as ever.
"""

from __future__ import annotations

import ctypes
import mmap
import signal
from string import Template

from luthier_py.base.llvm import Effort, HostCode, host_object
from luthier_py.emulator.records.words import address_of, zero_words

_ROOM = 4096  # mappings; those above are not looked after
_ROW_WORDS = 2
MESSAGE = "a kernel or a copy was behind the end of a file that the program has registered and made shorter since"
_SA_SIGINFO = 4
_ANONYMOUS, _FIXED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0x10

_HANDLER = """
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i64 @write(i32, ptr, i64)
declare ptr @signal(i32, ptr)
@text = private constant [$size x i8] c"$text"

; A page of zeros where there is none, and the access is made once more. si_addr is at offset 16 of siginfo_t.
define void @bus_error(i32 %signal, ptr %info, ptr %context) {
entry:
  %place = getelementptr i8, ptr %info, i64 16
  %address = load i64, ptr %place
  br label %look
look:
  %row = phi i64 [ 0, %entry ], [ %next, %other ]
  %more = icmp ult i64 %row, $room
  br i1 %more, label %compare, label %foreign
compare:
  %at = getelementptr [2 x i64], ptr inttoptr (i64 $rows to ptr), i64 %row
  %start = load atomic i64, ptr %at monotonic, align 8
  %size.at = getelementptr i64, ptr %at, i64 1
  %size = load atomic i64, ptr %size.at monotonic, align 8
  %into = sub i64 %address, %start
  %inside = icmp ult i64 %into, %size
  br i1 %inside, label %found, label %other
other:
  %next = add i64 %row, 1
  br label %look
found:
  %page = and i64 %address, -$page
  %to = inttoptr i64 %page to ptr
  %got = call ptr @mmap(ptr %to, i64 $page, i32 3, i32 $how, i32 -1, i64 0)
  %good = icmp eq ptr %got, %to
  br i1 %good, label %tell, label %foreign
tell:
  %old = cmpxchg ptr inttoptr (i64 $lost to ptr), i64 0, i64 %address seq_cst seq_cst
  %first = extractvalue { i64, i1 } %old, 1
  %wanted = icmp ne i64 $failure, 0
  %both = and i1 %first, %wanted
  br i1 %both, label %fail, label %done
fail:
  %failed = cmpxchg ptr inttoptr (i64 $failure to ptr), i32 0, i32 $status seq_cst seq_cst
  %written = call i64 @write(i32 2, ptr @text, i64 $size)
  br label %done
done:
  ret void
foreign:
  %before = call ptr @signal(i32 %signal, ptr null)
  ret void
}
"""


class _Action(ctypes.Structure):
    """struct sigaction of the C library, on 64-bit Linux."""

    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ulong * 16), ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p)]  # fmt: skip


class MappedFiles:
    """Mutable: one for this process. ``failure``: address of an i32 that gets ``status`` then, with a line on stderr;
    0: it is said by whoever takes what was lost."""

    def __init__(self, failure: int = 0, status: int = 0) -> None:
        self._failure, self._status = failure, status
        self._rows = zero_words(_ROOM * _ROW_WORDS)
        self._lost = zero_words(1)
        self._places: dict[int, int] = {}  # rows by start
        self._code: HostCode | None = None

    def add(self, start: int, size: int) -> None:
        """From now on a file is mapped there."""
        self.remove(start)
        taken = set(self._places.values())
        row = next((row for row in range(_ROOM) if row not in taken), None)
        if row is None:
            return
        if self._code is None:
            self._install()
        self._rows[row * _ROW_WORDS] = start
        self._rows[row * _ROW_WORDS + 1] = size
        self._places[start] = row

    def remove(self, start: int) -> None:
        row = self._places.pop(start, None)
        if row is not None:
            self._rows[row * _ROW_WORDS + 1] = 0

    def take_lost(self) -> int:
        """The first address where nothing was left, since this was asked last; or 0."""
        lost = self._lost[0]
        if lost:
            self._lost[0] = 0
        return lost

    def _install(self) -> None:
        text, how = f"luthier: {MESSAGE}\n", _ANONYMOUS | _FIXED
        ir = Template(_HANDLER).substitute(
            size=len(text), text=text.replace("\n", "\\0A"), room=_ROOM, rows=address_of(self._rows),
            page=mmap.PAGESIZE, how=how, lost=address_of(self._lost), failure=self._failure, status=self._status,
        )  # fmt: skip
        self._code = HostCode(host_object(ir, Effort.FAST), ["bus_error"], {})
        action = _Action(self._code.address("bus_error"), flags=_SA_SIGINFO)
        ctypes.CDLL(None).sigaction(signal.SIGBUS, ctypes.byref(action), None)
