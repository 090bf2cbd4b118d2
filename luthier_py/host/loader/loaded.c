/* Which programs are run by the loader that LUTHIER_LOADER names, and how (ld.so(8)).
 *
 * Invariant: what the kernel would refuse, or starts in another way, stays as it is: files that are no dynamic program of
 * this machine, or have other rights than their caller. Nothing is allocated: the caller may be a child of vfork. */
#include "loaded.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char LOADER[] = "/ld-linux-x86-64.so.2", OURS[] = "libluthier_loader.so";
enum { NAME = 64 }; /* of a loader, as programs have it */

static const char *value_of(char *const *variables, const char *name)
{
    size_t length = strlen(name);
    for (; variables && *variables; variables++)
        if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=')
            return *variables + length + 1;
    return NULL;
}

static char program[PATH_MAX];

/* The sixth word of a command line that names a loader, while the folder is still that in which it was written. The C
 * library, which is not ready yet (-z initfirst), does not know the environment. */
__attribute__((constructor)) static void find_own_program(int count, char **given, char **environment)
{
    static char words[6 * PATH_MAX];
    (void)count, (void)given;
    int fd = value_of(environment, "LUTHIER_LOADER") ? open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC) : -1;
    ssize_t known = fd < 0 ? 0 : read(fd, words, sizeof words - 1);
    if (fd >= 0)
        close(fd);
    const char *at = words, *end = words + (known < 0 ? 0 : known);
    for (int i = 0; i < BEFORE - 1 && at < end; i++) {
        if (i == 1 && strcmp(at, "--library-path") != 0)
            return;
        at += strlen(at) + 1;
    }
    char *real = at < end ? canonicalize_file_name(at) : NULL;
    if (real && strlen(real) < sizeof program)
        strcpy(program, real);
    free(real);
}

const char *own_program(void) { return *program ? program : NULL; }

/* What kind of file it is: a program that requests the machine's loader, a script, whose first line is saved, or
 * neither. */
static enum { OTHER, PROGRAM, SCRIPT } kind_of(const char *path, char line[LINE])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), kind = OTHER;
    union { Elf64_Ehdr header; char text[LINE]; } begin = {.text = ""};
    struct stat about;
    if (fd < 0)
        return OTHER;
    ssize_t known = pread(fd, &begin, LINE - 1, 0);
    const Elf64_Ehdr *elf = &begin.header;
    bool usual = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && !(about.st_mode & (S_ISUID | S_ISGID)) &&
                 access(path, X_OK) == 0 && fgetxattr(fd, "security.capability", NULL, 0) < 0;
    if (usual && known > 2 && begin.text[0] == '#' && begin.text[1] == '!') {
        memcpy(line, begin.text, LINE);
        line[strcspn(line, "\n")] = 0;
        kind = SCRIPT;
    } else if (usual && known >= (ssize_t)sizeof *elf && memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0 &&
               elf->e_ident[EI_CLASS] == ELFCLASS64 && elf->e_machine == EM_X86_64 && elf->e_phentsize == sizeof(Elf64_Phdr)) {
        Elf64_Phdr segment;
        char name[NAME] = "";
        for (int i = 0; i < elf->e_phnum && kind == OTHER; i++)
            if (pread(fd, &segment, sizeof segment, (off_t)(elf->e_phoff + (size_t)i * sizeof segment)) == sizeof segment &&
                segment.p_type == PT_INTERP && segment.p_filesz < sizeof name &&
                pread(fd, name, segment.p_filesz, (off_t)segment.p_offset) == (ssize_t)segment.p_filesz) {
                size_t length = strlen(name), end = sizeof LOADER - 1;
                kind = length >= end && strcmp(name + length - end, LOADER) == 0 ? PROGRAM : OTHER;
            }
    }
    close(fd);
    return kind;
}

/* An interpreter and its one argument, which the kernel does not split (execve(2)), out of a script's first line. */
static size_t split(char *line, const char *words[2])
{
    char *first = line + 2 + strspn(line + 2, " \t"), *end = first + strcspn(first, " \t");
    char *second = end + strspn(end, " \t");
    for (size_t last = strlen(second); last && strchr(" \t", second[last - 1]); last--)
        second[last - 1] = 0;
    words[0] = first;
    words[1] = second;
    bool two = *second;
    *end = 0;
    return *first ? 1 + two : 0;
}

bool load_by_name(struct loaded *to, const char *path, char *const *given, char *const *environment)
{
    const char *loader = value_of(environment, "LUTHIER_LOADER"), *libraries = value_of(environment, "LUTHIER_LIBRARIES");
    const char *preloaded = value_of(environment, "LD_PRELOAD"), *first = value_of(environment, "LD_LIBRARY_PATH");
    if (!loader || !libraries || !preloaded || !strstr(preloaded, OURS) || !given || !given[0])
        return false;
    const char *script[MOST_OF_A_SCRIPT];
    size_t begun = MOST_OF_A_SCRIPT; /* what precedes `given` is put in from behind */
    if (*program && strcmp(path, "/proc/self/exe") == 0)
        path = program;
    const char *name = given[0];
    for (int depth = 0;; depth++) {
        char line[LINE];
        int kind = kind_of(path, line);
        if (kind == OTHER || (kind == SCRIPT && depth == MOST_INTERPRETERS))
            return false;
        if (kind == PROGRAM)
            break;
        memcpy(to->lines[depth], line, LINE);
        const char *words[2];
        size_t count = split(to->lines[depth], words);
        if (!count)
            return false;
        script[--begun] = path;
        if (count == 2)
            script[--begun] = words[1];
        name = path = words[0];
    }
    if (snprintf(to->libraries, sizeof to->libraries, "%s%s%s", first ? first : "", first && *first ? ":" : "", libraries) >=
        (int)sizeof to->libraries)
        return false;
    if (!strchr(path, '/')) { /* the loader would look for it as for a library */
        if (snprintf(to->place, sizeof to->place, "./%s", path) >= (int)sizeof to->place)
            return false;
        path = to->place;
    }
    const char *before[BEFORE] = {loader, "--library-path", to->libraries, "--argv0", name, path};
    size_t count = 0;
    for (size_t i = 0; i < BEFORE; i++)
        to->words[count++] = before[i];
    for (size_t i = begun; i < MOST_OF_A_SCRIPT; i++)
        to->words[count++] = script[i];
    for (size_t i = 1; given[i]; i++)
        to->words[count++] = given[i];
    to->words[count] = NULL;
    to->path = loader;
    return true;
}
