// The code object that is in this program, as a file that modules are loaded from.
#pragma once
#include "resources.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <unistd.h>

inline std::vector<char> file_bytes(const char *name)
{
    std::ifstream stream(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// The bundle of code objects, as the compiler's driver wrote it: it starts on a page of the executable.
inline const std::vector<char> &own_bundle()
{
    static std::vector<char> bundle;
    if (!bundle.empty())
        return bundle;
    const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    std::vector<char> program = file_bytes("/proc/self/exe");
    for (size_t start = 0; start + sizeof magic < program.size(); start += 4096)
        if (!std::memcmp(program.data() + start, magic, sizeof magic - 1))
            bundle.assign(program.begin() + long(start), program.end());
    REQUIRE(!bundle.empty());
    return bundle;
}

// The code object itself, an ELF: entries of a bundle are offset, size, length of the name, name.
inline std::vector<char> own_code_object()
{
    const std::vector<char> &bundle = own_bundle();
    uint64_t count, entry[3], at = 32;
    std::memcpy(&count, bundle.data() + 24, 8);
    for (uint64_t i = 0; i < count; i++) {
        std::memcpy(entry, bundle.data() + at, sizeof entry);
        if (entry[1])
            return {bundle.begin() + long(entry[0]), bundle.begin() + long(entry[0] + entry[1])};
        at += sizeof entry + entry[2];
    }
    REQUIRE(!"a code object in the bundle");
    return {};
}

// A file that is there as long as this.
struct File {
    char name[32] = "/tmp/conformance-XXXXXX";
    explicit File(const std::vector<char> &content)
    {
        int file = mkstemp(name);
        REQUIRE(file >= 0);
        REQUIRE(write(file, content.data(), content.size()) == ssize_t(content.size()));
        close(file);
    }
    ~File() { unlink(name); }
    File(const File &) = delete;
};

struct Module {
    hipModule_t handle = nullptr;
    Module() { CHECK(hipModuleLoadData(&handle, own_bundle().data())); }
    explicit Module(const char *file) { CHECK(hipModuleLoad(&handle, file)); }
    ~Module() { (void)hipModuleUnload(handle); }
    Module(const Module &) = delete;
    operator hipModule_t() const { return handle; }
    hipFunction_t function(const char *name) const
    {
        hipFunction_t found = nullptr;
        CHECK(hipModuleGetFunction(&found, handle, name));
        return found;
    }
};
