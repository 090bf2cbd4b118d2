/* What new memory holds, where the tool wants to know what nobody has written: in each dword a number made of its address
 * (luthier_py/rewrite/tool/arguments/allocations.py), by which hooks know it again. Whoever writes it, kernel, copy or host, takes it away.
 */
#include "preloaded.h"

#include <stdlib.h>

enum { AT_ONCE = 1 << 20 }; /* dwords */
#define MOST_BYTES ((size_t)1 << 32) /* all of it would have to exist */

void memory_mark(void *address, size_t bytes)
{
    if (!address || bytes > MOST_BYTES || !tool_named() || !tool_on() || !settings.marks_memory)
        return;
    hipError_t before = REAL(hipPeekAtLastError)();
    size_t dwords = bytes / 4, room = dwords < AT_ONCE ? dwords : AT_ONCE;
    uint32_t *marks = malloc(4 * room + 1);
    for (size_t first = 0; marks && first < dwords; first += room) {
        size_t count = dwords - first < room ? dwords - first : room;
        uint64_t number = (uintptr_t)address / 4 + first;
        for (size_t i = 0; i < count; i++)
            marks[i] = (uint32_t)((number + i) * 0x9E3779B97F4A7C15u >> 32);
        tool_copies((char *)address + 4 * first, marks, 4 * count, COPY_TO_DEVICE);
    }
    free(marks);
    restore_error(before);
}
