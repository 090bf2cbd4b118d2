// A private array that is indexed at run time and too large for registers and LDS: scratch memory.
// Every work-item shuffles 0 .. 63 (Fisher-Yates, its own seed) and writes the weighted sum.
#include "device.h"

KERNEL void __launch_bounds__(256) scratch(u32 n, const u32 *seeds, u32 *sums) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 cards[64];
  ROLLED for (u32 k = 0; k < 64; ++k)
    cards[k] = k;
  u32 random = seeds[i];
  ROLLED for (u32 k = 63; k > 0; --k) {
    random = random * 1664525u + 1013904223u;
    u32 j = (random >> 16) % (k + 1);
    u32 card = cards[j];
    cards[j] = cards[k];
    cards[k] = card;
  }
  u32 sum = 0;
  ROLLED for (u32 k = 0; k < 64; ++k)
    sum += k * cards[k];
  sums[i] = sum;
}
