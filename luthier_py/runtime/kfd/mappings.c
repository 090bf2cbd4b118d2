/* What this process has mapped, as the kernel tells it: lines of /proc/self/maps. */
#include <string.h>
#include <sys/sysmacros.h>

#include "kfd.h"

bool next_mapping(FILE *maps, struct mapping *found)
{
    unsigned device_major, device_minor;
    int name;
    while (fgets(found->line, sizeof found->line, maps)) {
        if (sscanf(found->line, "%lx-%lx %*c%c%*c%c %lx %x:%x %lu %n", &found->start, &found->end, &found->write, &found->kind,
                   &found->offset, &device_major, &device_minor, &found->inode, &name) != 8)
            continue;
        found->device = makedev(device_major, device_minor);
        found->name = found->line + name;
        found->line[strcspn(found->line, "\n")] = '\0';
        return true;
    }
    return false;
}
