/* Graphs under a tool. */
#include "tool.h"

bool capturing(stream_t stream)
{
    int status = 0;
    return stream && REAL(hipStreamIsCapturing)(stream, &status) == hipSuccess && status != 0;
}
