/* Descriptors that represent /dev/kfd and render nodes: of unnamed files, recognized by fstat. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kfd.h"

enum { NODES = 1 + MAX_GPUS };

static struct node { int fd; dev_t device; ino_t inode; } nodes[NODES]; /* /dev/kfd, then the render nodes */
static _Atomic int node_count;

bool node_add(void)
{
    struct stat about;
    int fd = memfd_create("luthier-gpu", MFD_CLOEXEC);
    if (fd < 0 || REAL(fstat)(fd, &about) < 0)
        return false;
    nodes[node_count] = (struct node){descriptor_out_of_the_way(fd), about.st_dev, about.st_ino};
    node_count++;
    return true;
}

int node_open(int node, int flags)
{
    return fcntl(nodes[node == KFD_NODE ? 0 : node - FIRST_RENDER + 1].fd, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
}

int node_behind(int fd)
{
    struct stat about;
    int before = errno;
    if (!node_count || fd < 0 || REAL(fstat)(fd, &about) < 0) {
        errno = before;
        return NO_NODE;
    }
    for (int i = 0; i < node_count; i++)
        if (nodes[i].inode == about.st_ino && nodes[i].device == about.st_dev)
            return i ? FIRST_RENDER + i - 1 : KFD_NODE;
    return NO_NODE;
}

int nodes_gpus(void) { return node_count - 1; }

void nodes_after_fork(void)
{
    for (int i = 0; i < node_count; i++)
        close(nodes[i].fd);
    node_count = 0;
}
