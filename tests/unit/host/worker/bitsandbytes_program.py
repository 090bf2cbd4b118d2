"""bitsandbytes' kernels for ROCm, as its wheel has them: argv is the library, ``few`` or ``all``, a file for results.

Says PASSED when NumPy gets the same; else a line for each result that differs. ``few`` takes one kernel of each kind
and size, ``all`` each that its C interface can reach: 172 of 175. The third argument is a .npz of all results.
The signatures are those of bitsandbytes/backends/cuda/ops.py (MIT licence).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from ctypes import byref, c_bool, c_float, c_int

import numpy as np

NF4 = np.array([  # Dettmers et al., "QLoRA", appendix E
    -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1], np.float32)  # fmt: skip
FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3], np.float32) / np.float32(12)  # two bits of exponent, one of mantissa
LEVELS = {"nf4": NF4, "fp4": np.concatenate([FP4, -FP4])}
PLACES = {"fp32": 2.0**-22, "fp16": 2.0**-10, "bf16": 2.0**-7}  # twice the error of one rounding, relative
SIZES = {"all": (32, 64, 128, 256, 512, 1024, 2048, 4096), "few": (64, 256)}
B1, B2, B3, ALPHA, EPS, DECAY, RATE = 0.9, 0.99, 0.999, 5.0, 1e-3, 0.01, 1e-2  # of optimisers
POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
Floats = np.ndarray
hip = ctypes.CDLL("libamdhip64.so.7", ctypes.RTLD_GLOBAL)
kernels = ctypes.CDLL(sys.argv[1])
WHICH = sys.argv[2]
KINDS = tuple(PLACES) if WHICH == "all" else ("fp32", "fp16")
random = np.random.default_rng(1)
results: dict[str, np.ndarray] = {}
wrong: list[str] = []


def stored(values: Floats, kind: str) -> np.ndarray:
    """As memory has them; bf16 as words."""
    if kind != "bf16":
        return values.astype({"fp32": np.float32, "fp16": np.float16}[kind])
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def numbers(memory: np.ndarray) -> Floats:
    return (memory.astype(np.uint32) << 16).view(np.float32) if memory.dtype == np.uint16 else memory


def normal(count: int, kind: str = "fp32") -> Floats:
    """Numbers that this kind has."""
    return numbers(stored(random.standard_normal(count), kind)).astype(np.float32)


def device(values: np.ndarray) -> POINTER:
    memory = POINTER()
    assert hip.hipMalloc(byref(memory), SIZE(values.nbytes)) == 0
    assert hip.hipMemcpy(memory, POINTER(values.ctypes.data), SIZE(values.nbytes), 1) == 0
    return memory


def zeros(count: int, kind: str) -> POINTER:
    return device(stored(np.zeros(count), kind))


def host(name: str, memory: POINTER, like: np.ndarray) -> np.ndarray:
    """What memory holds now, in the form of ``like``; kept under that name."""
    values = np.empty_like(like)
    assert hip.hipMemcpy(POINTER(values.ctypes.data), memory, SIZE(values.nbytes), 2) == 0
    results[name] = values
    return numbers(values)


def near(name: str, got: Floats, wanted: Floats, error: float | Floats) -> None:
    """Each number within ``error`` of what is wanted."""
    off = np.abs(got.astype(float) - wanted)
    if not np.all(off <= error):
        place = int(np.argmax(np.where(np.isnan(off), np.inf, off - error)))
        wrong.append(f"{name}: {got.flat[place]} for {np.asarray(wanted).flat[place]} at {place}")


def steps() -> Floats:
    levels = np.sort(random.uniform(-1, 1, 256)).astype(np.float32)
    levels[0], levels[-1] = -1, 1
    return levels


def blockwise(kind: str, form: str, block: int) -> None:
    """Of 256 or 16 levels the nearest, times the block's largest magnitude, and back; the last block is not full."""
    packed, suffix = form in LEVELS, f"{kind}_{form}".rstrip("_")
    levels = LEVELS[form] if packed else steps()
    count = 3 * block - 2
    values = normal(count, kind)
    table = None if packed else device(levels)
    # The way back reads a scale in lanes that have no element, too: up to 4096 elements behind the last one.
    largest = device(np.zeros(3 + 4096 // block, np.float32))
    codes = device(np.zeros(count // (1 + packed), np.uint8))
    getattr(kernels, f"cquantize_blockwise_{suffix}")(
        table, device(stored(values, kind)), largest, codes, c_int(block), c_int(count))  # fmt: skip
    name = f"blockwise {suffix} {block}"
    most = host(f"{name}: largest", largest, np.zeros(3, np.float32))
    code = host(f"{name}: codes", codes, np.zeros(count // (1 + packed), np.uint8))
    if packed:
        code = np.stack([code >> 4, code & 15], 1).ravel()
    scale = np.repeat([np.abs(values[start : start + block]).max() for start in range(0, count, block)], block)[:count]
    near(f"{name}: largest", most, scale[::block], 0)
    scaled = values / scale
    off = np.abs(levels[code].astype(float) - scaled)
    near(f"{name}: codes", off, np.abs(levels[None].astype(float) - scaled[:, None]).min(1), 2e-6)
    back = zeros(count, kind)
    getattr(kernels, f"cdequantize_blockwise_{suffix}")(table, codes, largest, back, c_int(block), c_int(count), None)
    wanted = levels[code].astype(float) * scale
    got = host(f"{name}: back", back, stored(wanted, kind))
    near(f"{name}: back", got, wanted, np.abs(wanted) * PLACES[kind])


def four_bits(form: str, rows: int, columns: int, block: int) -> tuple[np.ndarray, Floats, Floats]:
    """A matrix as codes, its blocks' scales, and what it is."""
    code = random.integers(0, 16, rows * columns)
    scale = random.uniform(0.5, 2, rows * columns // block).astype(np.float32)
    known = LEVELS[form][code].astype(float) * np.repeat(scale, block)
    return (code[::2] << 4 | code[1::2]).astype(np.uint8), scale, known.reshape(rows, columns)


def times_vector(kind: str) -> None:
    rows, columns, block = 96, 512, 64
    codes, scale, known = four_bits("nf4", rows, columns, block)
    x, out = normal(columns, kind), zeros(rows, kind)
    getattr(kernels, f"cgemm_4bit_inference_naive_{kind}")(
        rows, 1, columns, device(stored(x, kind)), device(codes), device(scale), device(NF4), out, rows,
        (columns + 1) // 2, rows, block, None)  # fmt: skip
    wanted = known @ x.astype(float)
    got = host(f"vector {kind}", out, stored(wanted, kind))
    near(f"vector {kind}", got, wanted, PLACES[kind] * np.abs(known) @ np.abs(x))


def times_matrix(kind: str, count: int, form: str, nested: bool) -> None:
    """``count`` vectors at once, with a bias; ``nested``: scales are codes in eight bits themselves."""
    rows, columns, block = 80, 512, 64
    codes, scale, known = four_bits(form, rows, columns, block)
    x, bias, out = normal(count * columns, kind).reshape(count, columns), normal(rows, kind), zeros(count * rows, kind)
    inner: list[POINTER | None] = [device(scale), None, None, None]
    if nested:
        levels, chosen = steps(), random.integers(0, 256, len(scale)).astype(np.uint8)
        outer = random.uniform(1, 2, -(-len(scale) // 256)).astype(np.float32)
        inner = [device(array) for array in (outer, chosen, levels, np.array([1.5], np.float32))]
        new = levels[chosen].astype(float) * np.repeat(outer, 256)[: len(scale)] + 1.5
        known = (known.reshape(-1, block) * (new / scale)[:, None]).reshape(rows, columns)
    getattr(kernels, f"cgemm_4bit_{kind}")(
        device(stored(x, kind)), device(codes), *inner, out, device(stored(bias, kind)), count, rows, columns, block,
        1 if form == "fp4" else 2, None)  # fmt: skip
    wanted = x.astype(float) @ known.T + bias
    name = f"matrix {kind} {count} {form} {nested}"
    got = host(name, out, stored(wanted, kind))
    near(name, got, wanted, PLACES[kind] * (np.abs(x) @ np.abs(known.T) + np.abs(bias)))


def optimizer(name: str, kind: str, skip: bool, most: float) -> None:
    """A third step with states of 32 bits. ``most``: a limit of the update's length, which another kernel finds."""
    count, two = 5000, name in ("adam", "ademamix")
    gradient, values = (normal(count, kind) for _ in range(2))
    gradient[::7] = 0
    first, second = normal(count * (1 + (name == "ademamix"))), np.abs(normal(count))
    if not two and name not in ("momentum", "lion"):
        first = np.abs(first)
    length = device(np.zeros(1, np.float32))
    placed = [device(stored(gradient, kind)), device(stored(values, kind)), device(first), device(second)]
    suffix = {"fp32": "32", "fp16": "16"}.get(kind, kind) if name in ("momentum", "rmsprop", "adagrad") else kind
    scale = 0.5
    getattr(kernels, f"c{name}32bit_grad_{suffix}")(
        *placed, length, *map(c_float, (most, 2.0, B1, B2, B3, ALPHA, EPS, DECAY)), c_int(3), c_float(RATE),
        c_float(scale), c_bool(skip), c_int(count))  # fmt: skip
    moved, states, norm = stepped(
        name, numbers(stored(gradient * scale, kind)).astype(float), values.astype(float),
        (first.astype(float), second.astype(float)), most, skip, kind)  # fmt: skip
    label = f"{name} {kind} {skip} {most}"
    near(f"{label}: values", host(f"{label}: values", placed[1], stored(values, kind)), moved,
         3e-6 + np.abs(moved) * 2 * PLACES[kind])  # fmt: skip
    for number, (memory, like, wanted) in enumerate(zip(placed[2:], (first, second), states, strict=True)):
        error = 1e-5 if kind == "fp32" else 20 * PLACES[kind]
        near(f"{label}: state {number}", host(f"{label}: state {number}", memory, like), wanted, error)
    if most and norm is not None:
        found = host(f"{label}: length", length, np.zeros(1, np.float32))
        near(f"{label}: length", found, np.array([norm]), norm * (1e-4 + 4 * PLACES[kind]))


def stepped(
    name: str, g: Floats, p: Floats, states: tuple[Floats, Floats], most: float, skip: bool, kind: str,
) -> tuple[Floats, tuple[Floats, Floats], float | None]:
    """Values and states behind the step, and the square of the update's length where its kernel is modelled.

    ``kind`` is empty for states of 8 bits, where decay changes what RMSprop and Adagrad keep but not what they take.
    """
    s, t = states
    c1, c2 = 1 - B1**3, (1 - B2**3) ** 0.5
    if name == "ademamix":
        count = len(p)
        m, n, t = B1 * s[:count] + (1 - B1) * g, B3 * s[count:] + (1 - B3) * g, B2 * t + (1 - B2) * g * g
        moved = (p - RATE * (m / c1 + ALPHA * n) / (np.sqrt(t) / c2 + EPS)) * (1 - RATE * DECAY)
        return moved, (np.concatenate([m, n]), t), None
    if name == "adam":
        s, t = B1 * s + (1 - B1) * g, B2 * t + (1 - B2) * g * g
        norm = float(np.sum((s / c1 / (np.sqrt(t / c2**2) + EPS)) ** 2))
        scale = limit(norm, most, 0)
        moved = (p - scale * RATE * c2 / c1 * s / (np.sqrt(t) + EPS * c2)) * (1 - RATE * DECAY)
        return kept(skip, g, (p, moved), states, (s, t), norm)
    if name == "lion":  # its length is that of the next step
        moved, s = p * (1 - RATE * DECAY) - RATE * np.sign(s * B1 + (1 - B1) * g), s * B2 + (1 - B2) * g
        return kept(skip, g, (p, moved), states, (s, t), None)
    decayed = g + p * DECAY
    decayed = numbers(stored(decayed, kind)).astype(float) if kind else decayed
    if name == "momentum":
        norm, s = float(np.sum((s * B1 + g) ** 2)), s * B1 + decayed
        moved = p - limit(norm, most, EPS) * RATE * s
    else:
        share = {"rmsprop": (B1, 1 - B1), "adagrad": (1, 1)}[name]
        norm = float(np.sum((g / (np.sqrt(s * share[0] + share[1] * g * g) + EPS)) ** 2))
        s = s * share[0] + share[1] * decayed * decayed
        scale = limit(norm, most, EPS) if name == "rmsprop" else 1
        moved = p - scale * RATE * (decayed if kind else g) / (np.sqrt(s) + EPS)
    return kept(skip, decayed, (p, moved), states, (s, t), norm)


def limit(norm: float, most: float, eps: float) -> float:
    return min(1.0, (most * 2.0 + eps) / norm**0.5) if most and norm > 0 else 1.0


def kept(
    skip: bool, g: Floats, values: tuple[Floats, Floats], old: tuple[Floats, Floats], new: tuple[Floats, Floats],
    norm: float | None,
) -> tuple[Floats, tuple[Floats, Floats], float | None]:
    """With ``skip`` what has no gradient stays."""
    there = (g != 0) | (not skip)
    first, second = (np.where(there, a, b) for a, b in zip(new, old, strict=True))
    return np.where(there, values[1], values[0]), (first, second), norm


def small_states(name: str, kind: str) -> None:
    """A third step with states of 8 bits in blocks of 256: 2 of ``steps`` levels, scaled by each block's largest."""
    block, two = 256, name in ("adam", "ademamix")
    count = 1024 if name == "ademamix" else 1000  # scales of its third state begin at count / 256, rounded down
    gradient, values = (normal(count, kind) for _ in range(2))
    length = count * (1 + (name == "ademamix"))
    signed, unsigned = steps(), np.linspace(0, 1, 256).astype(np.float32)
    maps = (signed if two or name in ("momentum", "lion") else unsigned, unsigned)
    codes = [random.integers(0, 256, size).astype(np.uint8) for size in (length, count)]
    scales = [random.uniform(0.5, 1, 2 * -(-size // block)).astype(np.float32) for size in (length, count)]
    parts = [codes[0][:count], codes[0][count:], codes[1]]
    blocks = -(-count // block)
    spread = [np.repeat(scales[0][:blocks], block)[:count], np.repeat(scales[0][blocks:], block)[: length - count],
              np.repeat(scales[1], block)[:count]]  # fmt: skip
    whole = [levels[part].astype(float) * by
             for levels, part, by in zip((maps[0], maps[0], unsigned), parts, spread, strict=True)]  # fmt: skip
    placed = [device(array) for array in (stored(values, kind), stored(gradient, kind), *codes, *maps, *scales)]
    getattr(kernels, f"c{name}_8bit_blockwise_grad_{kind}")(
        *placed[:4], *map(c_float, (B1, B2, B3, ALPHA, EPS)), c_int(3), c_float(RATE), *placed[4:], c_float(DECAY),
        c_float(1), c_bool(False), c_int(count))  # fmt: skip
    old = np.concatenate(whole[:2]), whole[2]
    moved, (first, second), _ = stepped(name, gradient.astype(float), values.astype(float), old, 0, False, "")
    label = f"{name} 8 bits {kind}"
    near(f"{label}: values", host(f"{label}: values", placed[0], stored(values, kind)), moved,
         1e-5 + np.abs(moved) * 2 * PLACES[kind])  # fmt: skip
    wanted = [first[:count], first[count:], second]
    code, scale = host(f"{label}: codes", placed[2], codes[0]), host(f"{label}: scales", placed[6], scales[0])
    found = [(code[:count], scale[:blocks], maps[0]), (code[count:], scale[blocks:], maps[0])]
    code, scale = host(f"{label}: codes 2", placed[3], codes[1]), host(f"{label}: scales 2", placed[7], scales[1])
    found.append((code, scale, unsigned))
    for number in range(3) if name == "ademamix" else (0, 2) if two else (0,):
        part, by, levels = found[number]
        most = np.array([np.abs(wanted[number][start : start + block]).max() for start in range(0, count, block)])
        near(f"{label}: largest {number}", by[:blocks], most, 1e-5)
        unit = wanted[number] / np.repeat(most, block)[:count]
        off = np.abs(levels[part].astype(float) - unit)
        least = np.abs(levels[None].astype(float) - unit[:, None]).min(1)
        near(f"{label}: codes {number}", off, least, 1e-5 + 2 * widest(levels, unit))


def widest(levels: Floats, unit: Floats) -> Floats:
    """Half the step around each number: beside a level of the other sign the kernel takes the next one."""
    place = np.clip(np.searchsorted(levels, unit), 1, len(levels) - 1)
    near_zero = (levels[place - 1] < 0) != (levels[place] < 0)
    return np.where(near_zero, (levels[place] - levels[place - 1]).astype(float), 0)


def rows_to_bytes(threshold: float) -> None:
    """Eight-bit integers, by the largest magnitude of each row, of what is below the threshold."""
    rows, columns = 20, 1500
    matrix = normal(rows * columns, "fp16").reshape(rows, columns)
    out, most = device(np.zeros(matrix.shape, np.int8)), device(np.zeros(rows, np.float32))
    kernels.cint8_vector_quant(
        device(stored(matrix, "fp16")), out, most, c_float(threshold), rows, columns, None)  # fmt: skip
    name = f"rows to bytes {threshold}"
    scale = host(f"{name}: largest", most, np.zeros(rows, np.float32))
    taken = np.where(np.abs(matrix) < threshold, matrix, 0) if threshold else matrix
    near(f"{name}: largest", scale, np.abs(taken).max(1), 0)
    got = host(f"{name}: bytes", out, np.zeros(matrix.shape, np.int8))
    near(f"{name}: bytes", got, np.rint(taken * (np.float32(127) / scale[:, None])), 0)


def back_from_sums() -> None:
    """What products of such bytes are: sums times both scales, over 127 squared, and a bias."""
    rows, columns = 33, 70
    sums = random.integers(-200000, 200000, (rows, columns)).astype(np.int32)
    row, column, bias = np.abs(normal(rows)), np.abs(normal(columns)), normal(columns, "fp16")
    for extra in (bias, None):
        out = zeros(rows * columns, "fp16")
        place = None if extra is None else device(stored(extra, "fp16"))
        kernels.cdequant_mm_int32_fp16(device(sums), device(row), device(column), out, place, rows, columns, None)
        wanted = sums * row[:, None].astype(float) * column / 127**2 + (0 if extra is None else extra)
        name = f"back from sums {extra is None}"
        got = host(name, out, stored(wanted, "fp16"))
        near(name, got, wanted, 1e-3 + np.abs(wanted) * PLACES["fp16"])


def elementwise() -> None:
    values = normal(3000)
    memory, other = device(values), device(values * np.float32(3))
    kernels.c_mul_fp32(memory, other, c_float(0), ctypes.c_int64(3000))
    near("multiplied", host("multiplied", memory, values), values * (values * np.float32(3)), 0)
    kernels.carange_fp32(memory, None, c_float(0), ctypes.c_int64(3000))
    near("numbered", host("numbered", memory, values), np.arange(3000), 0)
    kernels.cfill_fp32(memory, None, c_float(2.5), ctypes.c_int64(3000))
    near("filled", host("filled", memory, values), np.full(3000, 2.5), 0)
    few = np.zeros(3000, np.uint8)
    memory = device(few)
    kernels.cfill_uint8(memory, None, ctypes.c_ubyte(200), ctypes.c_int64(3000))
    near("filled bytes", host("filled bytes", memory, few), np.full(3000, 200), 0)


def parts() -> Iterator[tuple[object, ...]]:
    whole = WHICH == "all"
    for kind in KINDS:
        for block in SIZES[WHICH]:
            for form in ("", "nf4", "fp4"):
                if (form or block > 32) and (whole or form != "fp4"):
                    yield blockwise, kind, form, block
        yield times_vector, kind
        for count in range(1, 9) if whole else (1, 3):
            yield times_matrix, kind, count, ("nf4", "fp4")[count % 2], count % 3 == 0
        for name in ("adam", "momentum", "rmsprop", "lion", "adagrad", "ademamix") if whole else ("adam",):
            if kind != "bf16" or name in ("adam", "lion", "ademamix"):
                for most in (0.0, 0.5) if whole else (0.5,):
                    yield optimizer, name, kind, most > 0, most
            yield small_states, name, kind
    for threshold in (0.0, 1.5):
        yield rows_to_bytes, threshold
    yield (back_from_sums,)
    if whole:
        yield (elementwise,)


def main() -> None:
    for part, *arguments in parts():
        part(*arguments)  # type: ignore[operator]
    if len(sys.argv) > 3:
        np.savez(sys.argv[3], **results)
    print("\n".join(wrong) or "PASSED")


main()
