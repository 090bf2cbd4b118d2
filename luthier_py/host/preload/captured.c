/* Captures of the program: what the tool does meanwhile is not theirs, and must not make them invalid.
 *
 * A thread that is relaxed may wait for streams that are not captured. Copies that wait for the default stream are never
 * allowed; the thread's own stream does as well.
 */
#include "preloaded.h"

enum { RELAXED = 2 };

static atomic_int captures;

/* Whether a capture ended with this. */
static bool is_over(hipError_t error)
{
    return error == hipSuccess || error == hipErrorStreamCaptureInvalidated || error == hipErrorStreamCaptureUnjoined;
}

bool capturing(stream_t stream)
{
    int status = 0;
    return captures > 0 && stream && REAL(hipStreamIsCapturing)(stream, &status) == hipSuccess && status != 0;
}

#define BEGIN_CAPTURE(name)                                                                                               \
    hipError_t name(stream_t stream, int mode)                                                                            \
    {                                                                                                                     \
        hipError_t error = REAL(name)(stream, mode);                                                                      \
        captures += error == hipSuccess;                                                                                  \
        return error;                                                                                                     \
    }
BEGIN_CAPTURE(hipStreamBeginCapture)
BEGIN_CAPTURE(hipStreamBeginCapture_spt)

hipError_t hipStreamBeginCaptureToGraph(stream_t stream, struct graph *graph, struct node *const *before, const void *edges,
                                        size_t count, int mode)
{
    hipError_t error = REAL(hipStreamBeginCaptureToGraph)(stream, graph, before, edges, count, mode);
    captures += error == hipSuccess;
    return error;
}

#define END_CAPTURE(name)                                                                                                 \
    hipError_t name(stream_t stream, struct graph **graph)                                                                \
    {                                                                                                                     \
        hipError_t error = REAL(name)(stream, graph);                                                                     \
        captures -= is_over(error);                                                                                  \
        return error;                                                                                                     \
    }
END_CAPTURE(hipStreamEndCapture)
END_CAPTURE(hipStreamEndCapture_spt)

static int exchange_mode(int mode)
{
    REAL(hipThreadExchangeStreamCaptureMode)(&mode);
    return mode;
}

/* While something is captured: calls that are not for any capture are allowed between these. */
int capture_relax(void) { return captures > 0 ? exchange_mode(RELAXED) : RELAXED; }

void capture_restore(int mode)
{
    if (mode != RELAXED)
        exchange_mode(mode);
}

hipError_t tool_waits(stream_t stream)
{
    int mode = capture_relax();
    hipError_t error = REAL(hipStreamSynchronize)(stream);
    capture_restore(mode);
    return error;
}

hipError_t tool_copies(void *to, const void *from, size_t bytes, int kind)
{
    if (captures <= 0)
        return REAL(hipMemcpy)(to, from, bytes, kind);
    hipError_t error = REAL(hipMemcpyAsync)(to, from, bytes, kind, (stream_t)STREAM_PER_THREAD);
    return error ? error : tool_waits((stream_t)STREAM_PER_THREAD);
}
