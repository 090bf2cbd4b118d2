/* How long a code object or a bundle in memory is: its loader is given an address and no size.
 *
 * Its content may be anything: memory is read through the kernel, which checks that it is mapped.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "modules.h"

enum { PAGE = 4096, BATCH = 256 };

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* SIZE_MAX: these are no part of any memory. */
static size_t end_of(uint64_t offset, uint64_t bytes)
{
    const uint64_t most = (uint64_t)1 << 47;
    return offset < most && bytes < most ? offset + bytes : SIZE_MAX;
}

static bool read_at(const char *image, size_t offset, void *to, size_t bytes)
{
    struct iovec here = {to, bytes}, there = {(void *)((uintptr_t)image + offset), bytes};
    ssize_t done = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    if (done < 0 && errno != EFAULT) { /* a sandbox that forbids it */
        memcpy(to, image + offset, bytes);
        return true;
    }
    return done == (ssize_t)bytes;
}

/* A byte of each page is looked at. */
bool image_is_there(const void *image, size_t bytes)
{
    uintptr_t place = (uintptr_t)image, end = place + bytes;
    char seen[BATCH];
    while (place < end) {
        struct iovec pages[BATCH], here = {seen, 0};
        for (; here.iov_len < BATCH && place < end; place = place / PAGE * PAGE + PAGE)
            pages[here.iov_len++] = (struct iovec){(void *)place, 1};
        ssize_t done = process_vm_readv(getpid(), &here, 1, pages, here.iov_len, 0);
        if (done != (ssize_t)here.iov_len && (done >= 0 || errno == EFAULT))
            return false;
    }
    return true;
}

static size_t elf_bytes(const char *image)
{
    Elf64_Ehdr head;
    if (!read_at(image, 0, &head, sizeof head))
        return 0;
    size_t end = larger(end_of(head.e_shoff, (uint64_t)head.e_shnum * head.e_shentsize),
                        end_of(head.e_phoff, (uint64_t)head.e_phnum * head.e_phentsize));
    for (unsigned i = 0; i < head.e_shnum && end != SIZE_MAX; i++) {
        Elf64_Shdr section;
        if (!read_at(image, head.e_shoff + (size_t)i * head.e_shentsize, &section, sizeof section))
            return 0;
        if (section.sh_type != SHT_NOBITS)
            end = larger(end, end_of(section.sh_offset, section.sh_size));
    }
    for (unsigned i = 0; i < head.e_phnum && end != SIZE_MAX; i++) {
        Elf64_Phdr segment;
        if (!read_at(image, head.e_phoff + (size_t)i * head.e_phentsize, &segment, sizeof segment))
            return 0;
        end = larger(end, end_of(segment.p_offset, segment.p_filesz));
    }
    return end;
}

/* Clang documentation, "ClangOffloadBundler": count, then offset, size, length of the name, name of each entry. */
static size_t bundle_bytes(const char *image, size_t magic)
{
    uint64_t count, entry[3];
    if (!read_at(image, magic, &count, sizeof count))
        return 0;
    size_t at = magic + sizeof count, end = at;
    for (uint64_t i = 0; i < count && end != SIZE_MAX; i++) {
        if (!read_at(image, at, entry, sizeof entry))
            return 0;
        size_t next = end_of(at + sizeof entry, entry[2]);
        end = larger(larger(end, next), end_of(entry[0], entry[1]));
        at = next;
    }
    return end;
}

struct segment { uintptr_t address; size_t left; };

static int find_segment(struct dl_phdr_info *info, size_t size, void *data)
{
    struct segment *wanted = data;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum && !wanted->left; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, inside = wanted->address - start;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && wanted->address >= start && inside < info->dlpi_phdr[i].p_filesz)
            wanted->left = info->dlpi_phdr[i].p_filesz - inside;
    }
    return wanted->left != 0;
}

/* Version 1 does not say how long it is: at most up to the end of what the program was loaded from. */
static size_t loaded_bytes(const char *image)
{
    struct segment segment = {(uintptr_t)image, 0};
    dl_iterate_phdr(find_segment, &segment);
    return segment.left;
}

static size_t compressed_bytes(const char *image)
{
    uint16_t version = 0;
    uint32_t narrow = 0;
    uint64_t wide = 0;
    if (!read_at(image, 4, &version, sizeof version))
        return 0;
    if (version == 2)
        return read_at(image, 8, &narrow, sizeof narrow) ? narrow : 0;
    if (version == 3)
        return read_at(image, 8, &wide, sizeof wide) ? end_of(0, wide) : 0;
    return version == 1 ? loaded_bytes(image) : 0;
}

enum form { UNKNOWN, ELF, COMPRESSED, BUNDLE };
static const char BUNDLE_MAGIC[] = "__CLANG_OFFLOAD_BUNDLE__";

static enum form form_of(const char *image)
{
    char magic[sizeof BUNDLE_MAGIC - 1];
    if (!read_at(image, 0, magic, SELFMAG))
        return UNKNOWN;
    if (memcmp(magic, ELFMAG, SELFMAG) == 0)
        return ELF;
    if (memcmp(magic, "CCOB", 4) == 0)
        return COMPRESSED;
    return read_at(image, 0, magic, sizeof magic) && memcmp(magic, BUNDLE_MAGIC, sizeof magic) == 0 ? BUNDLE : UNKNOWN;
}

bool image_is_known(const void *image) { return form_of(image) != UNKNOWN; }

size_t image_bytes(const void *image)
{
    enum form form = form_of(image);
    size_t bytes = form == ELF          ? elf_bytes(image)
                   : form == COMPRESSED ? compressed_bytes(image)
                   : form == BUNDLE     ? bundle_bytes(image, sizeof BUNDLE_MAGIC - 1)
                                        : 0;
    return bytes == SIZE_MAX ? 0 : bytes;
}
