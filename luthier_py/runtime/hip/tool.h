/* The LD_PRELOAD tool: what its two files share. interpose.c catches calls, tool.c decides and launches clones. */
#ifndef LUTHIER_TOOL_H
#define LUTHIER_TOOL_H

#include "luthier.h"

/* The runtime's own function of that name; NULL when there is none, or the process ends with one line. */
void *real_function(const char *name);
void *required_function(const char *name);
#define REAL(name) ((__typeof__(&name))required_function(#name))

struct image;
struct image *image_new(const void *data, size_t bytes); /* bytes 0: as many as its headers say; NULL if unknown */
void image_loaded(struct image *image, struct module *module); /* it is this module of the program */
void image_unloaded(struct image *image);
/* A variable of a registered fat binary: its host symbol, or for a managed one the pointer to its memory. */
void image_variable(struct image *image, const char *name, void *symbol, bool managed);

/* One launch, in whatever form it came. */
struct shape { struct dim3 grid, block; unsigned lds_bytes; stream_t stream; void **args, **extra; bool cooperative; };

/* Launch the clone of an image's kernel; false when the original is to run instead. */
bool tool_launch(struct image *image, const char *kernel, const struct shape *shape, hipError_t *error);
void tool_prepare(void); /* start the worker, while the program starts */
void tool_active(bool active); /* by hipProfilerStart and hipProfilerStop */

#endif
