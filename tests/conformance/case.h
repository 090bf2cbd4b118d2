// Conformance cases: short functions, each of which shows one thing that HIP promises.
//
// CASE(name) { ... } is one; ALONE(name) { ... } is one that needs a process of its own, since it leaves a fault behind or may
// crash. CHECK, GIVES, REQUIRE and EQUAL end a case that is not as it should be; they throw, so not in threads and callbacks.
// The program lists its cases, or runs those that it is given, in this order:
// a line `ok NAME` or `FAIL NAME FILE:LINE: ...` for each before the next begins.
// Invariant: after a case that leaves the device unable to go on, no other runs: exit code 3, and the caller starts again.
#pragma once
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

namespace conformance {

struct Case {
    const char *name;
    void (*run)();
    bool alone;
};

inline std::vector<Case> &cases()
{
    static std::vector<Case> all;
    return all;
}

struct Registered {
    Registered(const char *name, void (*run)(), bool alone) { cases().push_back({name, run, alone}); }
};

struct Failed {
    std::string words;
};

inline const char *base_name(const char *file)
{
    const char *slash = std::strrchr(file, '/');
    return slash ? slash + 1 : file;
}

[[noreturn]] inline void fail(const char *file, int line, const std::string &words)
{
    throw Failed{std::string(base_name(file)) + ":" + std::to_string(line) + ": " + words};
}

inline std::string named(hipError_t error) { return std::string(hipGetErrorName(error)) + " (" + std::to_string(int(error)) + ")"; }

inline void gives(const char *file, int line, const char *text, hipError_t wanted, hipError_t got)
{
    if (got != wanted)
        fail(file, line, std::string(text) + " gave " + named(got) + ", not " + named(wanted));
}

template <typename Wanted, typename Got>
void equal(const char *file, int line, const char *text, const Wanted &wanted, const Got &got)
{
    if (got == wanted)
        return;
    std::ostringstream words;
    words << text << " is " << +got << ", not " << +wanted;
    fail(file, line, words.str());
}

// What went wrong, or "".
inline std::string outcome(void (*run)())
{
    (void)hipGetLastError();
    try {
        run();
    } catch (const Failed &failed) {
        return failed.words;
    } catch (const std::exception &error) {
        return std::string("exception: ") + error.what();
    }
    return "";
}

inline bool run_case(const Case &each)
{
    std::string words = outcome(each.run);
    hipError_t after = hipDeviceSynchronize();
    bool goes_on = after == hipSuccess || each.alone;
    if (words.empty() && !goes_on)
        words = "hipDeviceSynchronize after the case gave " + named(after);
    std::printf(words.empty() ? "ok %s%s\n" : "FAIL %s %s\n", each.name, words.c_str());
    std::fflush(stdout);
    return goes_on;
}

// What takes all memory is killed before others are.
inline void offer_oneself()
{
    if (std::FILE *file = std::fopen("/proc/self/oom_score_adj", "w")) {
        std::fputs("1000", file);
        std::fclose(file);
    }
}

inline int main_of(int count, char **names)
{
    offer_oneself();
    if (count < 2)
        for (const Case &each : cases())
            std::printf("%s%s\n", each.name, each.alone ? " alone" : "");
    for (int i = 1; i < count; i++) {
        const Case *found = nullptr;
        for (const Case &each : cases())
            if (!std::strcmp(each.name, names[i]))
                found = &each;
        if (!found)
            std::printf("FAIL %s is not in this program\n", names[i]);
        else if (!run_case(*found))
            return 3;
    }
    return 0;
}

} // namespace conformance

#define CONFORMANCE_CASE(name, alone)                                                                            \
    static void case_##name();                                                                                   \
    static conformance::Registered registered_##name(#name, case_##name, alone);                                 \
    static void case_##name()
#define CASE(name) CONFORMANCE_CASE(name, false)
#define ALONE(name) CONFORMANCE_CASE(name, true)

#define GIVES(error, ...) conformance::gives(__FILE__, __LINE__, #__VA_ARGS__, error, (__VA_ARGS__))
#define CHECK(...) GIVES(hipSuccess, __VA_ARGS__)
#define EQUAL(wanted, ...) conformance::equal(__FILE__, __LINE__, #__VA_ARGS__, wanted, (__VA_ARGS__))
#define REQUIRE(...)                                                                                             \
    do {                                                                                                         \
        if (!(__VA_ARGS__))                                                                                      \
            conformance::fail(__FILE__, __LINE__, "not so: " #__VA_ARGS__);                                      \
    } while (0)

#ifndef CONFORMANCE_OWN_MAIN // a program that starts itself again with other arguments has its own, which calls main_of
int main(int count, char **names) { return conformance::main_of(count, names); }
#endif
