"""hiprtc's compiler: what it makes, what it keeps, and that the program's side reaches it."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from executables import executable
from rocm_stack import find_stack, lacking

from luthier_py.base.errors import LuthierError, Unsupported
from luthier_py.binary.loader import load
from luthier_py.host import hiprtc
from luthier_py.host.hip import runtime_folder
from luthier_py.host.hiprtc.compilation import MORE_OPTIONS, Compiled, SourceText, compile_program
from luthier_py.host.worker.device.properties import LAYOUT_R0000, LAYOUT_R0600, offset
from luthier_py.rewrite.clang.search import CLANG, HEADERS, NO_COMPILER, Search

TARGET = "gfx90a"
SOURCE = 'extern "C" __global__ void twice(int *v) { v[threadIdx.x] *= 2; }\n'


@pytest.fixture
def tools(require_tool: Callable[[str], str]) -> Search:
    """The machine's own."""
    require_tool("clang++-22")
    try:
        search = Search()
        search.toolchain(TARGET)
    except Unsupported as error:
        lacking(str(error))
    return search


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with nothing in it, and a folder for temporary files."""
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    return tmp_path / "temporary"


def program(source: str = SOURCE, *options: str, expressions: tuple[str, ...] = (), **more: Any) -> SourceText:
    return SourceText(**{"folder": "/", "target": TARGET, "name": "p.hip", "source": source, "options": options,
                      "expressions": expressions, **more})  # fmt: skip


def test_code(tools: Search, fresh: Path) -> None:
    made = compile_program(program(), tools)
    kernel = load(made.code).kernels[0]
    assert (kernel.name, made.log, made.bitcode, list(fresh.iterdir())) == ("twice", "", b"", [])


def test_names_leave_nothing_in_the_code(tools: Search, fresh: Path) -> None:
    source = "template <typename T> __global__ void k(T *v) { *v = 1; }\ntemplate __global__ void k<int>(int *);\n"
    named = compile_program(program(source, expressions=("k<int>",)), tools)
    plain = compile_program(program(source), tools)
    assert named.names == ("_Z1kIiEvPT_",) and plain.names == ()
    files = [ELFFile(io.BytesIO(made.code)) for made in (named, plain)]
    loaded = SH_FLAGS.SHF_ALLOC
    sections = [{s.name: s.data() for s in file.iter_sections() if s["sh_flags"] & loaded} for file in files]
    assert sections[0].keys() == sections[1].keys() and {".text", ".rodata", ".dynsym"} <= sections[0].keys()
    for name in (".text", ".rodata"):
        assert sections[0][name] == sections[1][name]
    assert len(sections[0][".dynsym"]) == len(sections[1][".dynsym"])


@pytest.fixture
def counted(tools: Search, fresh: Path, tmp_path: Path) -> Callable[..., tuple[Compiled, int]]:
    """Compiles, and counts how often something was compiled for it: preprocessing is none."""
    calls, script = tmp_path / "calls", 'case " $* " in *" -E "*) ;; *) echo x >> {} ;; esac\nexec {} "$@"\n'
    wrapper = executable(tmp_path / "clang++", "#!/bin/sh\n" + script.format(calls, tools.compiler(TARGET)))
    search = Search(environment={**os.environ, CLANG: str(wrapper)})
    compile_program(program(), search)  # what is asked once of a compiler, and made once for it

    def made(asked: SourceText) -> tuple[Compiled, int]:
        calls.write_text("")
        result = compile_program(asked, search)
        return result, len(calls.read_text().split())

    return made


def test_what_was_made_is_kept(counted: Callable[..., tuple[Compiled, int]], tmp_path: Path) -> None:
    """Until a file that was read is another."""
    header = tmp_path / "own header.h"
    header.write_text("#define VALUE 1\n")
    source = f'#warning seen\n#include "{header}"\nextern "C" __global__ void k(int *v) {{ *v = VALUE; }}\n'
    first, compilations = counted(program(source))
    assert compilations == 1 and "seen" in first.log
    assert counted(program(source)) == (first, 0)
    header.write_text("#define VALUE 2\n")
    second, compilations = counted(program(source))
    assert compilations == 1 and second.code != first.code
    assert counted(program(source, "-DMORE"))[1] == 1
    assert counted(program(source)) == (second, 0)


def test_what_headers_say_in_the_log_is_kept_with_them(
    counted: Callable[..., tuple[Compiled, int]], tmp_path: Path
) -> None:
    header = tmp_path / "h.h"
    for words in ("one", "two"):
        header.write_text(f"#warning {words}\n")
        made, compilations = counted(program(f'#include "{header}"\n{SOURCE}'))
        assert words in made.log and compilations == 1


def test_a_header_that_is_found_earlier(counted: Callable[..., tuple[Compiled, int]], tmp_path: Path) -> None:
    """Where the compiler searched in vain the last time; `-fgpu-rdc -Werror` says nothing of unused options."""
    early, late = tmp_path / "a", tmp_path / "b"
    early.mkdir()
    late.mkdir()
    (late / "h.h").write_text("#define VALUE 1\n")
    options = "-I", str(early), "-I", str(late), "-fgpu-rdc", "-Werror"
    asked = program('#include <h.h>\nextern "C" __global__ void k(int *v) { *v = VALUE; }\n', *options)
    first, compilations = counted(asked)
    assert compilations == 1 and counted(asked) == (first, 0)
    (early / "h.h").write_text("#define VALUE 2\n")
    second, compilations = counted(asked)
    assert compilations == 1 and second.bitcode != first.bitcode


def test_a_header_that_is_only_asked_for(counted: Callable[..., tuple[Compiled, int]], tmp_path: Path) -> None:
    asked = program("#if __has_include(<h.h>)\n#warning there\n#endif\n" + SOURCE, "-I", str(tmp_path))
    assert counted(asked)[0].log == "" and counted(asked)[1] == 0
    (tmp_path / "h.h").touch()
    assert "there" in counted(asked)[0].log


@pytest.mark.parametrize("name", ("CPATH", "CPLUS_INCLUDE_PATH"))
def test_folders_of_the_environment(
    name: str, counted: Callable[..., tuple[Compiled, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = program('#include <h.h>\nextern "C" __global__ void k(int *v) { *v = VALUE; }\n')
    codes = []
    for value in (1, 2):
        folder = tmp_path / str(value)
        folder.mkdir()
        (folder / "h.h").write_text(f"#define VALUE {value}\n")
        monkeypatch.setenv(name, str(folder))
        made, compilations = counted(asked)
        assert compilations == 1 and counted(asked) == (made, 0)
        codes.append(made.code)
    assert codes[0] != codes[1]


def test_options_of_the_environment_s_own(
    counted: Callable[..., tuple[Compiled, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clang's variable that changes its arguments, which need not be seen in the preprocessed text."""
    source = 'extern "C" __global__ void k(float *v) { *v = *v * *v + 3.0f; }\n'
    first, _ = counted(program(source))
    monkeypatch.setenv("CCC_OVERRIDE_OPTIONS", "# +-ffp-contract=off")
    assert counted(program(source))[0].code != first.code


def test_errors_are_not_kept(tools: Search, fresh: Path) -> None:
    for _ in range(2):
        with pytest.raises(LuthierError, match=r"^p\.hip:1:9: error: expected expression"):
            compile_program(program("int x = ;\n"), tools)
    assert list(fresh.iterdir()) == []


def test_more_options_of_the_environment(tools: Search, fresh: Path) -> None:
    search = Search(environment={**os.environ, MORE_OPTIONS: "-DONE -DTWO=2"})
    compile_program(program("#if !defined(ONE) || TWO != 2\n#error lost\n#endif\n" + SOURCE), search)


def test_no_target(tools: Search) -> None:
    with pytest.raises(LuthierError, match="no architecture"):
        compile_program(program(target=""), tools)


@pytest.mark.parametrize("name, shown", [("a/b/c.cu", "c.cu"), ("", "CompileSource"), ("..", "CompileSource")])
def test_names_of_sources(name: str, shown: str, tools: Search) -> None:
    with pytest.raises(LuthierError, match=rf"^{re.escape(shown)}:1:2: error: here"):
        compile_program(program("#error here\n", name=name), tools)


@pytest.mark.parametrize("names", [("a", "a/b.h"), ("a/b.h", "a"), ("h" * 300,)])
def test_headers_that_no_folder_can_have(names: tuple[str, ...], tools: Search, fresh: Path) -> None:
    with pytest.raises(LuthierError, match=rf"^hiprtc: the header `{names[-1]}` cannot be written: \w") as raised:
        compile_program(program(headers=tuple((name, "") for name in names)), tools)
    assert str(fresh) not in str(raised.value) and list(fresh.iterdir()) == []


@pytest.mark.parametrize("character", ("n", "\u00e9", "\U0001f600", "\udcff"))
def test_long_names_of_sources(character: str, tools: Search, fresh: Path) -> None:
    assert compile_program(program(name=f"x{character * 300}"), tools).code


def test_what_the_system_refuses_is_said(tools: Search, fresh: Path) -> None:
    """Arguments of more than 128 KiB each, and no folder for temporary files."""
    with pytest.raises(LuthierError, match=r"^hiprtc: Argument list too long"):
        compile_program(program(SOURCE, f"-DX={'x' * 200_000}"), tools)
    fresh.rmdir()
    with pytest.raises(LuthierError, match=rf"^hiprtc: No such file or directory: {fresh}"):
        compile_program(program(), tools)


def test_a_refused_header_gives_a_log(tools: Search) -> None:
    calls = """
rtc.hiprtcDestroyProgram(ctypes.byref(program))
names, texts = (ctypes.c_char_p * 2)(b"a", b"a/b.h"), (ctypes.c_char_p * 2)(b" ", b" ")
rtc.hiprtcCreateProgram(ctypes.byref(program), b"int x;", b"p.hip", 2, texts, names)
compile(b"--offload-arch=gfx90a")
"""
    (line,) = told(calls)
    assert line.startswith("6 False hiprtc: the header `a/b.h` cannot be written: ")


def test_older_headers(tools: Search, fresh: Path) -> None:
    """HIP 5's, and a device library that is whole."""
    stack = find_stack()
    if stack is None:
        lacking("no ROCm 5 to take headers of: LUTHIER_ROCM_STACK")
    environment = {**os.environ, HEADERS: str(stack.headers), "HIP_DEVICE_LIB_PATH": str(stack.device_libraries)}
    source = 'extern "C" __global__ void k(float *v) { v[threadIdx.x] = sinf(*v) + __popc(3); atomicAdd(v, 1.0f); }\n'
    assert load(compile_program(program(source), Search(environment=environment)).code).kernels[0].name == "k"


WARP, DEVICE, SYNC = (f"hip/amd_detail/amd_{name}_functions.h" for name in ("warp", "device", "warp_sync"))
BALLOT, LANE = "inline int __ballot64(int x) { return x; }\n", "inline int __lane_id() { return 0; }\n"
ASKS_BALLOT, ASKS_LANE = "inline int mask() { return __ballot64(1); }\n", "inline int lane() { return __lane_id(); }\n"


@pytest.mark.parametrize(
    "major, headers",
    (
        (6, {DEVICE: LANE, WARP: ASKS_LANE}),  # until 6.1
        (6, {WARP: BALLOT + LANE, DEVICE: ASKS_BALLOT, SYNC: ASKS_LANE}),
        (7, {WARP: BALLOT + LANE, DEVICE: ASKS_BALLOT, SYNC: ASKS_LANE}),
    ),
)
def test_headers_come_in_the_order_that_each_release_asks_for(
    major: int, headers: dict[str, str], tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """Headers of a small installation, of which two ask for each other's functions."""
    wrapper = Path(hiprtc.__file__).parent / "hiprtc_runtime.h"
    text = wrapper.read_text()
    all_of_them, optional = (set(re.findall(words, text)) for words in (r"\n#include <(.+)>", r"__has_include\(<(.+)>"))
    for name, functions in {**dict.fromkeys(all_of_them - optional, ""), **headers}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#pragma once\n{functions}")
    (tmp_path / "hip" / "hip_runtime.h").write_text(f"#define HIP_VERSION_MAJOR {major}\n")
    words = ["-fsyntax-only", "-x", "c++", "-I", str(tmp_path), "-include", str(wrapper), os.devnull]
    done = subprocess.run([require_tool("clang++-22"), *words], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_program_knows_where_properties_name_the_target() -> None:
    text = next(path for path in hiprtc.HIPRTC_SOURCES if path.name == "compiler.c").read_text()
    since_6, before = (int(number) for number in re.findall(r"ARCH_NAME_OFFSET = (\d+)", text))
    assert (since_6, before) == (offset(LAYOUT_R0600, "gcnArchName"), offset(LAYOUT_R0000, "gcnArchName"))


CALLS = """
import ctypes, os, signal, sys
rtc = ctypes.CDLL("libhiprtc.so.%(major)s")
program, size = ctypes.c_void_p(), ctypes.c_size_t()
def compile(*options):
    array = (ctypes.c_char_p * len(options))(*options)
    result = rtc.hiprtcCompileProgram(program, len(options), array)
    rtc.hiprtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    if size.value:
        rtc.hiprtcGetProgramLog(program, log)
    rtc.hiprtcGetCodeSize(program, ctypes.byref(size))
    print(result, size.value > 0, log.value.decode().strip())
rtc.hiprtcCreateProgram(ctypes.byref(program), %(source)r, b"p.hip", 0, None, None)
"""


def told(calls: str, major: int = 7, **environment: str) -> list[str]:
    """Lines of a program without a device."""
    inherited = {name: value for name, value in os.environ.items() if name != "LUTHIER_DEVICE"}
    text = CALLS % {"major": major, "source": SOURCE.encode()} + calls
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600, env={
        **inherited, "LD_LIBRARY_PATH": str(runtime_folder()), **environment})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("major", (5, 6, 7))
def test_without_a_device(major: int, tools: Search) -> None:
    lines = told("compile(b'--offload-arch=gfx90a'); compile(b'--gpu-architecture=gfx906')\ncompile()", major)
    assert lines[:2] == ["0 True ", "0 True "]
    assert lines[2].startswith("6 False hiprtc: no architecture")


def test_the_device_s_target(tools: Search) -> None:
    for major in (5, 6, 7):
        assert told("compile()", major, LUTHIER_DEVICE="emulator:gfx908") == ["0 True "]


def test_without_a_compiler(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "ROCM_PATH": str(tmp_path)}
    if any(Path("/opt").glob("rocm*")):
        environment[CLANG] = "nowhere"
    (line,) = told("compile(b'--offload-arch=gfx90a')", **environment)
    assert line.startswith("6 False ") and (NO_COMPILER in line or "nowhere" in line)


def test_a_worker_that_died_is_started_again(tools: Search) -> None:
    calls = """
compile(b'--offload-arch=gfx90a')
import pathlib
def workers():
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\\0")
            marked = b"LUTHIER_TEST_MARK=%d" % os.getppid() in (path / "environ").read_bytes().split(b"\\0")
        except OSError:
            continue
        if marked and b"compiler" in words:
            yield int(path.name)
(worker,) = workers()
os.kill(worker, signal.SIGKILL)
compile(b'--offload-arch=gfx90a')
compile(b'--offload-arch=gfx90a')
"""
    first, *_, last = told(calls, LUTHIER_TEST_MARK=str(os.getpid()))
    assert first == last == "0 True "


def test_fork_does_not_wait_for_another_thread_s_compilation(tools: Search, tmp_path: Path) -> None:
    """The compiler waits until the child, which compiles too, has ended; the child's comes by, as it finds `begun`."""
    script = f"""#!/bin/sh
folder={tmp_path}
case " $* " in *" -print"*) ;; *)
    if mkdir $folder/begun 2> /dev/null; then
        for _ in $(seq 8000); do [ -e $folder/forked ] || sleep 0.05; done
        [ -e $folder/forked ] || touch $folder/late
    fi ;;
esac
exec {tools.compiler(TARGET)} "$@"
"""
    wrapper = executable(tmp_path / "clang++", script)
    calls = f"""
import pathlib, threading, time
folder = pathlib.Path({str(tmp_path)!r})
thread = threading.Thread(target=compile, args=(b"--offload-arch=gfx90a",))
thread.start()
while not (folder / "begun").exists():
    time.sleep(0.01)
child = os.fork()
if not child:
    program = ctypes.c_void_p()
    rtc.hiprtcCreateProgram(ctypes.byref(program), b"int x;", b"q.hip", 0, None, None)
    compile(b"--offload-arch=gfx90a")
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
print("late" if (folder / "late").exists() else "in time", flush=True)
(folder / "forked").touch()
thread.join()
"""
    lines = told(calls, **{CLANG: str(wrapper), "LUTHIER_CACHE_DIR": str(tmp_path / "cache")})
    assert lines == ["0 True ", "in time", "0 True "]
