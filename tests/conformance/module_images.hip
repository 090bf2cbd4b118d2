// Images that are none, or say more than there is; libraries; managed variables that modules have.
#include "own_module.h"

#include <elf.h>
#include <sys/mman.h>

extern "C" __global__ void write_42(int *to) { *to = 42; }
extern "C" __managed__ int counter = 11;
extern "C" __managed__ double table[3] = {1.5, 2.5, 3.5};
extern "C" __device__ int plain = 3;
extern "C" __global__ void add(int *to)
{
    to[0] = counter += 1;
    to[1] = int(table[0] + table[1] + table[2]);
    to[2] = plain;
}

// Bytes that end where memory ends.
struct AtTheEnd {
    char *start;
    const void *at;
    explicit AtTheEnd(const std::vector<char> &content)
    {
        size_t room = (content.size() + 4095) / 4096 * 4096;
        start = static_cast<char *>(mmap(nullptr, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(start + room, 4096, PROT_NONE);
        size = room + 4096;
        std::memcpy(start + room - content.size(), content.data(), content.size());
        at = start + room - content.size();
    }
    ~AtTheEnd() { munmap(start, size); }
    AtTheEnd(const AtTheEnd &) = delete;
    size_t size;
};

static hipError_t load(const std::vector<char> &content)
{
    AtTheEnd image(content);
    hipModule_t module;
    hipError_t error = hipModuleLoadData(&module, image.at);
    if (!error)
        (void)hipModuleUnload(module);
    return error;
}

static Elf64_Ehdr &head_of(std::vector<char> &image) { return *reinterpret_cast<Elf64_Ehdr *>(image.data()); }

CASE(images_may_end_where_memory_ends)
{
    CHECK(load(own_code_object()));
}
CASE(images_that_are_cut_off)
{
    std::vector<char> whole = own_code_object();
    for (size_t bytes : {size_t(1), size_t(4), size_t(16), sizeof(Elf64_Ehdr), size_t(500), whole.size() / 2, whole.size() - 1})
        GIVES(hipErrorInvalidImage, load({whole.begin(), whole.begin() + long(bytes)}));
    const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    GIVES(hipErrorInvalidImage, load({magic, magic + 24}));
    GIVES(hipErrorInvalidImage, load({'C', 'C', 'O', 'B'}));
}
CASE(headers_that_lie)
{
    for (uint64_t far : {uint64_t(1) << 20, uint64_t(1) << 40, ~uint64_t(0) - 100}) {
        std::vector<char> image = own_code_object();
        head_of(image).e_shoff = far;
        GIVES(hipErrorInvalidImage, load(image));
        image = own_code_object();
        head_of(image).e_phoff = far;
        GIVES(hipErrorInvalidImage, load(image));
        std::vector<char> bundle(own_bundle().begin(), own_bundle().begin() + 4096);
        std::memcpy(bundle.data() + 24, &far, sizeof far);
        GIVES(hipErrorInvalidImage, load(bundle));
    }
    std::vector<char> image = own_code_object();
    head_of(image).e_shnum = 0xFFFF;
    GIVES(hipErrorInvalidImage, load(image));
}
CASE(files_of_all_kinds)
{
    hipModule_t module;
    for (const char *text : {"", "x", "\x7f" "ELF", "CCOB", "no code object at all, but text, and some more of it"}) {
        File file(std::vector<char>(text, text + std::strlen(text)));
        REQUIRE(hipModuleLoad(&module, file.name) != hipSuccess);
    }
    GIVES(hipErrorFileNotFound, hipModuleLoad(&module, "/tmp/there is no such file"));
    GIVES(hipErrorInvalidValue, hipModuleLoad(&module, ""));
}

CASE(each_module_has_managed_variables_of_its_own)
{
    Module first, second;
    hipDeviceptr_t at[2];
    size_t bytes = 0;
    CHECK(hipModuleGetGlobal(&at[0], &bytes, first, "counter"));
    EQUAL(sizeof(int), bytes);
    CHECK(hipModuleGetGlobal(&at[1], nullptr, second, "counter"));
    REQUIRE(at[0] != at[1]);
    int *counters[] = {static_cast<int *>(at[0]), static_cast<int *>(at[1])};
    EQUAL(11, *counters[0]);
    *counters[1] = 100;
    Device<int> to(3);
    int *place = to;
    void *args[] = {&place};
    CHECK(hipModuleLaunchKernel(first.function("add"), 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
    REQUIRE(to.host() == (std::vector<int>{12, 7, 3}));
    CHECK(hipModuleLaunchKernel(second.function("add"), 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
    REQUIRE(to.host() == (std::vector<int>{101, 7, 3}));
    EQUAL(12, *counters[0]);
    EQUAL(101, *counters[1]);
    EQUAL(11, counter);
}
CASE(managed_variables_are_managed_memory)
{
    Module module;
    hipDeviceptr_t at;
    size_t bytes = 0;
    CHECK(hipModuleGetGlobal(&at, &bytes, module, "table"));
    EQUAL(3 * sizeof(double), bytes);
    hipPointerAttribute_t attributes = {};
    CHECK(hipPointerGetAttributes(&attributes, at));
    EQUAL(1, attributes.isManaged);
    EQUAL(2.5, static_cast<double *>(at)[1]);
}
CASE(managed_variables_go_with_their_module)
{
    hipDeviceptr_t at;
    {
        Module module;
        CHECK(hipModuleGetGlobal(&at, nullptr, module, "counter"));
    }
    hipPointerAttribute_t attributes = {};
    hipError_t error = hipPointerGetAttributes(&attributes, at);
    REQUIRE(error || !attributes.isManaged);
}
CASE(unloading_waits_for_launches)
{
    Device<int> to(3, 0);
    int *place = to;
    void *args[] = {&place};
    Stream s;
    Gate gate;
    std::thread opens([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
    });
    {
        Module module;
        gate.hold(s);
        hipError_t error = hipModuleLaunchKernel(module.function("add"), 1, 1, 1, 1, 1, 1, 0, s, args, nullptr);
        if (error)
            gate.open();
        (void)hipModuleUnload(module.handle);
    }
    opens.join();
    CHECK(hipStreamSynchronize(s));
    REQUIRE(to.host() == (std::vector<int>{12, 7, 3}));
}

#if HIP_VERSION >= 70100000
extern "C" hipError_t hipLibraryLoadData(hipLibrary_t *, const void *, hipJitOption **, void **, unsigned, hipLibraryOption **, void **, unsigned);

struct Library {
    hipLibrary_t handle = nullptr;
    Library() { CHECK(hipLibraryLoadData(&handle, own_bundle().data(), nullptr, nullptr, 0, nullptr, nullptr, 0)); }
    ~Library() { (void)hipLibraryUnload(handle); }
};
CASE(kernels_of_libraries)
{
    Library library;
    hipKernel_t kernel;
    unsigned count = 0;
    CHECK(hipLibraryGetKernelCount(&count, library.handle));
    EQUAL(2u, count);
    CHECK(hipLibraryGetKernel(&kernel, library.handle, "write_42"));
    Device<int> d(1, 0);
    int *at = d;
    void *args[] = {&at};
    CHECK(hipLaunchKernel(kernel, dim3(1), dim3(1), args, 0, nullptr));
    REQUIRE(d.all_are(42));
}
CASE(libraries_of_files)
{
    File file(own_code_object());
    hipLibrary_t library;
    hipKernel_t kernel;
    CHECK(hipLibraryLoadFromFile(&library, file.name, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(hipLibraryGetKernel(&kernel, library, "add"));
    CHECK(hipLibraryUnload(library));
    GIVES(hipErrorInvalidHandle, hipLibraryUnload(library));
}
CASE(libraries_refuse)
{
    Library library;
    hipKernel_t kernel;
    hipLibrary_t none;
    unsigned count;
    GIVES(hipErrorNotFound, hipLibraryGetKernel(&kernel, library.handle, "there is no such kernel"));
    GIVES(hipErrorInvalidValue, hipLibraryGetKernel(&kernel, library.handle, nullptr));
    GIVES(hipErrorInvalidValue, hipLibraryGetKernel(nullptr, library.handle, "add"));
    GIVES(hipErrorInvalidValue, hipLibraryGetKernelCount(nullptr, library.handle));
    GIVES(hipErrorInvalidHandle, hipLibraryGetKernelCount(&count, reinterpret_cast<hipLibrary_t>(0xFFFF)));
    GIVES(hipErrorInvalidHandle, hipLibraryUnload(nullptr));
    GIVES(hipErrorInvalidValue, hipLibraryLoadFromFile(&none, "/tmp/there is no such file", nullptr, nullptr, 0, nullptr, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipLibraryLoadData(nullptr, own_bundle().data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipLibraryLoadData(&none, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipLibraryLoadData(&none, own_bundle().data(), nullptr, nullptr, 1, nullptr, nullptr, 0));
}
#endif
