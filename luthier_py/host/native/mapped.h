/* What this process has mapped, and files that other processes may map, too. See mapped.c. */
#ifndef LUTHIER_MAPPED_H
#define LUTHIER_MAPPED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct mapping { uintptr_t start, end, offset, inode; dev_t device; char write, kind; const char *name; char line[4096 + 128]; };
FILE *open_mappings(void);                              /* NULL with errno */
bool next_mapping(FILE *maps, struct mapping *found);   /* the name lies in the line */
bool find_mapping(uintptr_t address, struct mapping *found); /* in which an address lies; false: it is in none */

/* A file of which a range is mapped: `name` leads another process of this user to it, `offset` is that of the range in it. */
struct shared_file { char name[4096]; uint64_t offset, inode; };
/* False where the range is not all in one shared mapping that may be written, of a file that can be found and is so long. */
bool find_shared_file(uintptr_t start, uintptr_t end, const struct mapping *mapping, struct shared_file *file);

#endif
