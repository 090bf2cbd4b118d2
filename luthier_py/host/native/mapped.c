/* What this process has mapped, as the kernel lists it in /proc/self/maps; and files behind it, which other processes
 * open by a name: the file's, or that of a descriptor of this process, the only name of memory without one
 * (memfd_create, shm_open) and of deleted files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "mapped.h"

static const char DESCRIPTORS[] = "/proc/self/fd"; /* for this process; others know it by its number */

/* By system calls: a library may replace the C library's functions. */
static int open_file(const char *name, int flags) { return (int)syscall(SYS_openat, AT_FDCWD, name, flags | O_CLOEXEC); }

FILE *open_mappings(void)
{
    int file = open_file("/proc/self/maps", O_RDONLY);
    FILE *maps = file < 0 ? NULL : fdopen(file, "r");
    if (!maps && file >= 0)
        close(file);
    return maps;
}

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

bool find_mapping(uintptr_t address, struct mapping *found)
{
    FILE *maps = open_mappings();
    bool there = false;
    while (maps && !there && next_mapping(maps, found))
        there = found->start <= address && address < found->end;
    if (maps)
        fclose(maps);
    return there;
}

/* Whether a name leads to the file that is mapped, and that file is as long: behind its end are no pages. Devices differ
 * where a file system lies on others (overlayfs, btrfs), numbers do not. */
static bool is_file_of(const char *name, unsigned long inode, uint64_t end)
{
    struct statx facts;
    if (syscall(SYS_statx, AT_FDCWD, name, 0, STATX_TYPE | STATX_INO | STATX_SIZE, &facts) < 0)
        return false;
    return S_ISREG(facts.stx_mode) && facts.stx_ino == inode && end < facts.stx_size + (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A descriptor of the mapped file, by which others can open it. */
static bool find_descriptor(const struct mapping *mapping, uint64_t end, char *name, size_t room)
{
    char own[64], target[sizeof mapping->line];
    int folder = open_file(DESCRIPTORS, O_RDONLY | O_DIRECTORY);
    DIR *all = folder < 0 ? NULL : fdopendir(folder);
    bool found = false;
    for (struct dirent *entry; all && !found && (entry = readdir(all));) {
        snprintf(own, sizeof own, "%s/%.20s", DESCRIPTORS, entry->d_name);
        ssize_t bytes = syscall(SYS_readlinkat, AT_FDCWD, own, target, sizeof target - 1);
        target[bytes < 0 ? 0 : bytes] = '\0';
        found = bytes > 0 && strcmp(target, mapping->name) == 0 && is_file_of(own, mapping->inode, end);
        if (found)
            snprintf(name, room, "/proc/%d/fd/%.20s", (int)getpid(), entry->d_name);
    }
    if (all)
        closedir(all);
    return found;
}

bool find_shared_file(uintptr_t start, uintptr_t end, const struct mapping *mapping, struct shared_file *file)
{
    if (start < mapping->start || end > mapping->end || mapping->kind != 's' || mapping->write != 'w' || *mapping->name != '/')
        return false;
    file->offset = mapping->offset + (start - mapping->start);
    file->inode = mapping->inode;
    uint64_t last = file->offset + (end - start);
    if (is_file_of(mapping->name, mapping->inode, last)) {
        snprintf(file->name, sizeof file->name, "%s", mapping->name);
        return strlen(mapping->name) < sizeof file->name;
    }
    return find_descriptor(mapping, last, file->name, sizeof file->name);
}
