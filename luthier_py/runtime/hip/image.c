/* How long a code object or a bundle in memory is: its loader is given an address and no size. */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "luthier.h"

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t elf_bytes(const char *image)
{
    Elf64_Ehdr head;
    memcpy(&head, image, sizeof head);
    size_t end = larger(head.e_shoff + (size_t)head.e_shnum * head.e_shentsize,
                        head.e_phoff + (size_t)head.e_phnum * head.e_phentsize);
    for (unsigned i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, image + head.e_shoff + (size_t)i * head.e_shentsize, sizeof section);
        if (section.sh_type != SHT_NOBITS)
            end = larger(end, section.sh_offset + section.sh_size);
    }
    for (unsigned i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image + head.e_phoff + (size_t)i * head.e_phentsize, sizeof segment);
        end = larger(end, segment.p_offset + segment.p_filesz);
    }
    return end;
}

/* Clang documentation, "ClangOffloadBundler": count, then offset, size, length of the name, name of each entry. */
static size_t bundle_bytes(const char *image, size_t magic)
{
    uint64_t count, entry[3];
    memcpy(&count, image + magic, sizeof count);
    size_t at = magic + sizeof count, end = at;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(entry, image + at, sizeof entry);
        at += sizeof entry + entry[2];
        end = larger(larger(end, at), entry[0] + entry[1]);
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
    uint16_t version;
    uint32_t narrow;
    uint64_t wide;
    memcpy(&version, image + 4, sizeof version);
    memcpy(&narrow, image + 8, sizeof narrow);
    memcpy(&wide, image + 8, sizeof wide);
    return version == 1 ? loaded_bytes(image) : version == 2 ? narrow : version == 3 ? wide : 0;
}

size_t image_bytes(const void *image)
{
    static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";
    if (memcmp(image, ELFMAG, SELFMAG) == 0)
        return elf_bytes(image);
    if (memcmp(image, "CCOB", 4) == 0)
        return compressed_bytes(image);
    return memcmp(image, bundle, sizeof bundle - 1) == 0 ? bundle_bytes(image, sizeof bundle - 1) : 0;
}
