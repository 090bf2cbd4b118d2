/* Rows by an address: a table that grows. The caller holds its own lock; rows move when others are added or removed. */
#ifndef LUTHIER_KEYED_H
#define LUTHIER_KEYED_H

#include <stddef.h>

/* A row is a struct that begins with its key, a pointer that is not NULL. */
struct keyed { char *rows; size_t row_bytes, count, room; };
#define KEYED(type) {NULL, sizeof(type), 0, 0}

void *keyed_find(const struct keyed *table, const void *key);      /* the key's row; NULL: there is none */
void *keyed_add(struct keyed *table, const void *key);             /* the same, or a new row, all zero but for its key; NULL: out of memory */
void keyed_remove(struct keyed *table, void *row);                 /* then another one may be in its place, or no key */
void *keyed_next(const struct keyed *table, const void *row);      /* the one behind it, the first for NULL; NULL: it was the last */

#endif
