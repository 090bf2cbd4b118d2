/* Rings of channels, for the levels: how they get memory, and what they are asked for. */
#ifndef LUTHIER_CHANNELS_H
#define LUTHIER_CHANNELS_H

#include "tool.h"

/* A level's memory. `shared`: of the host, fine-grained, which the device sees at the same address. */
struct channel_memory {
    void *(*device)(int device, size_t bytes);
    void *(*shared)(int device, size_t bytes);
    bool (*write)(void *to_device, const void *from, size_t bytes);
    bool (*read)(void *to, const void *from_device, size_t bytes);
    void (*free_device)(void *memory);
    void (*free_shared)(void *memory);
};

/* Where the head of a channel's ring is on a device; NULL: there is no memory. */
void *channel_head(const struct declared *about, int device, const struct channel_memory *memory);
void channels_flush(int device); /* whose launches are done: all that they pushed goes to the worker */
void channels_drop(void);        /* the tool goes, and no kernel of it runs */

#endif
