/* What a program does, for a trace: records at the end of the file that LUTHIER_TRACED names, and that others write to, too. */
#ifndef LUTHIER_TRACED_H
#define LUTHIER_TRACED_H

#include <stdbool.h>
#include <stdint.h>

/* Fields that a kind (protocol.py, Traced) has no use for are 0; times are nanoseconds of CLOCK_MONOTONIC. */
struct traced {
    uint32_t kind, process, thread, device;
    uint64_t stream, handle, number; /* a stream's number, the program's handle, and the number of what is reported */
    uint64_t asked, begin, end;      /* the program's call, and when it was carried out */
    uint64_t bytes;                  /* that were copied or filled */
    uint64_t name_bytes;             /* of a name, which follows */
};

bool traced(void); /* whether this process is traced */
uint64_t traced_now(void);
uint32_t traced_thread(void);
void trace(struct traced record, const char *name); /* of this process, and of this thread if it names none; `name` may be NULL */

#endif
