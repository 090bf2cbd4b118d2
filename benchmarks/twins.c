// Kernels as somebody would write them for a host, one thread; nbody and matmul are tests/data/host.c.
//
// Arguments are those of the kernels. Results are theirs bit for bit, but for sums of floats (reduce), whose order is
// free.

typedef unsigned u32;

void vector_add(u32 n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (u32 i = 0; i < n; ++i)
    c[i] = a[i] + b[i];
}

void saxpy(u32 n, float a, const float *restrict x, float *restrict y) {
  for (u32 i = 0; i < n; ++i)
    y[i] = __builtin_fmaf(a, x[i], y[i]);
}

void reduce(u32 n, const float *restrict in, float *restrict sums) {
#pragma clang fp reassociate(on)
  for (u32 group = 0; group < n / 256; ++group) {
    float sum = 0;
    for (u32 i = 0; i < 256; ++i)
      sum += in[group * 256 + i];
    sums[group] = sum;
  }
}

void mandelbrot(u32 width, u32 height, float left, float top, float step, u32 limit, u32 *restrict times) {
#pragma clang fp contract(off)
  for (u32 y = 0; y < height; ++y)
    for (u32 x = 0; x < width; ++x) {
      float cr = left + x * step, ci = top + y * step, zr = 0, zi = 0;
      u32 time = 0;
      while (time < limit && zr * zr + zi * zi <= 4.0f) {
        float next = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = next;
        ++time;
      }
      times[y * width + x] = time;
    }
}

void histogram(u32 n, const u32 *restrict values, u32 *restrict bins) {
  for (u32 i = 0; i < n; ++i)
    ++bins[values[i] % 64];
}

// Insertion sort of runs of 16, then merges: what is fast for 512 keys.
static void sort512(u32 *restrict keys) {
  u32 other[512];
  for (u32 run = 0; run < 512; run += 16)
    for (u32 i = run + 1; i < run + 16; ++i) {
      u32 key = keys[i], at = i;
      for (; at > run && keys[at - 1] > key; --at)
        keys[at] = keys[at - 1];
      keys[at] = key;
    }
  u32 *from = keys, *to = other;
  for (u32 size = 16; size < 512; size *= 2) {
    for (u32 run = 0; run < 512; run += 2 * size) {
      u32 a = run, b = run + size, end_a = b, end_b = b + size;
      for (u32 i = run; i < end_b; ++i) {
        u32 first = b == end_b || (a != end_a && from[a] <= from[b]);
        to[i] = first ? from[a] : from[b];
        a += first;
        b += !first;
      }
    }
    u32 *swap = from;
    from = to;
    to = swap;
  }
  if (from != keys)
    for (u32 i = 0; i < 512; ++i)
      keys[i] = from[i];
}

void bitonic_sort(u32 n, u32 *restrict keys) {
  for (u32 group = 0; group < n / 512; ++group)
    sort512(keys + group * 512);
}

void scratch(u32 n, const u32 *restrict seeds, u32 *restrict sums) {
  for (u32 i = 0; i < n; ++i) {
    u32 cards[64];
    for (u32 k = 0; k < 64; ++k)
      cards[k] = k;
    u32 random = seeds[i];
    for (u32 k = 63; k > 0; --k) {
      random = random * 1664525u + 1013904223u;
      u32 j = (random >> 16) % (k + 1), card = cards[j];
      cards[j] = cards[k];
      cards[k] = card;
    }
    u32 sum = 0;
    for (u32 k = 0; k < 64; ++k)
      sum += k * cards[k];
    sums[i] = sum;
  }
}

void transpose(u32 n, const u32 *restrict in, u32 *restrict out) {
  for (u32 row = 0; row < n; row += 32)
    for (u32 column = 0; column < n; column += 32)
      for (u32 y = 0; y < 32; ++y)
        for (u32 x = 0; x < 32; ++x)
          out[(column + y) * n + row + x] = in[(row + x) * n + column + y];
}

void gather(u32 n, const u32 *restrict places, const float *restrict in, float *restrict out) {
  for (u32 i = 0; i < n; ++i)
    out[i] = in[places[i]];
}

void scatter(u32 n, const float *restrict in, float *restrict out) {
  for (u32 i = 0; i < n; ++i)
    out[i * 2654435769u & (n - 1)] = in[i];
}

void spmv(u32 rows, const u32 *restrict columns, const float *restrict numbers, const float *restrict x,
          float *restrict y) {
  for (u32 row = 0; row < rows; ++row)
    y[row] = 0;
  for (u32 k = 0; k < 16; ++k)
    for (u32 row = 0; row < rows; ++row)
      y[row] = __builtin_fmaf(numbers[k * rows + row], x[columns[k * rows + row]], y[row]);
}

void spmv_rows(u32 rows, const u32 *restrict starts, const u32 *restrict columns, const float *restrict numbers,
               const float *restrict x, float *restrict y) {
  for (u32 row = 0; row < rows; ++row) {
    float sum = 0;
    for (u32 k = starts[row] * 16; k < starts[row + 1] * 16; ++k)
      sum = __builtin_fmaf(numbers[k], x[columns[k]], sum);
    y[row] = sum;
  }
}

void stencil(u32 width, const float *restrict in, float *restrict out) {
  for (u32 y = 1; y < width - 1; ++y)
    for (u32 x = 1; x < width - 1; ++x) {
      const float *at = in + y * width + x;
      out[y * width + x] = 0.2f * (*at + at[-1] + at[1] + *(at - width) + at[width]);
    }
}

void stencil_tiled(u32 width, const float *restrict in, float *restrict out) {
  stencil(width, in, out);
}

void tree(u32 n, const u32 *restrict in, u32 *restrict sums) {
  for (u32 group = 0; group < n / 4096; ++group) {
    u32 sum = 0;
    for (u32 i = 0; i < 4096; ++i)
      sum += in[group * 4096 + i];
    sums[group] = sum;
  }
}

void count(u32 n, u32 shift, const u32 *restrict values, u32 *restrict bins) {
  for (u32 i = 0; i < n; ++i)
    ++bins[values[i] >> shift];
}
