// Words in memory that streams write, and wait for.
#include "resources.h"

__global__ void set(uint64_t *to, uint64_t value) { *to = value; }

struct Wait {
    unsigned condition;
    uint64_t mask, value, fails, passes;
};
static const Wait WAITS[] = {
    {hipStreamWaitValueGte, ~0ull, 0x7FFF0001, 0x7FFF0000, 0x7FFF0010}, {hipStreamWaitValueGte, 0xF, 4, 0xF3, 6},
    {hipStreamWaitValueEq, ~0ull, 0x7FFFFFFF, 0x7FFF0000, 0x7FFFFFFF},  {hipStreamWaitValueEq, 0xFFFF, 1, 0x0FFF0000, 0x0FFF0001},
    {hipStreamWaitValueAnd, ~0ull, 0x70F0F0F0, 0x0F0F0F0F, 0x1F0F0F0F}, {hipStreamWaitValueAnd, 0xFF, 0xF4A, 0xF35, 2},
};

static hipError_t wait_32(hipStream_t s, void *at, const Wait &w)
{
    return hipStreamWaitValue32(s, at, uint32_t(w.value), w.condition, uint32_t(w.mask));
}
static hipError_t wait_64(hipStream_t s, void *at, const Wait &w) { return hipStreamWaitValue64(s, at, w.value, w.condition, w.mask); }

// Waits until the word is right, and nobody but the stream does.
template <typename T, typename Call> static void waits(Call wait, const Wait &w)
{
    Stream s;
    Pinned<T> word(2, T(w.fails));
    Event before, after;
    CHECK(hipEventRecord(before, s));
    CHECK(wait(s, &word[1], w));
    CHECK(hipEventRecord(after, s));
    CHECK(hipEventSynchronize(before));
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    GIVES(hipErrorNotReady, hipEventQuery(after));
    GIVES(hipErrorNotReady, hipStreamQuery(s));
    word[1] = T(w.passes);
    CHECK(hipStreamSynchronize(s));
    CHECK(hipEventQuery(after));
}

CASE(waits_of_32_bits)
{
    for (const Wait &w : WAITS)
        waits<uint32_t>(wait_32, w);
    waits<uint32_t>(wait_32, {hipStreamWaitValueNor, ~0ull, 0x7AAAAAAA, 0x85555555, 0x9AAAAAAA});
}
CASE(waits_of_64_bits)
{
    for (const Wait &w : WAITS)
        waits<uint64_t>(wait_64, w);
    waits<uint64_t>(wait_64, {hipStreamWaitValueGte, ~0ull, 0x7FFFFFFFFFFF0001, 0x7FFFFFFFFFFF0000, 0x7FFFFFFFFFFF0001});
    waits<uint64_t>(wait_64, {hipStreamWaitValueNor, ~0ull, 0x4724724747247247, 0xbddbddbdbddbddbd, 0xbddbddbdbddbddb3});
}
CASE(words_that_are_right_already)
{
    Pinned<uint32_t> word(1, 5u);
    CHECK(hipStreamWaitValue32(nullptr, word, 5, hipStreamWaitValueEq, 0xFFFFFFFF));
    CHECK(hipStreamSynchronize(nullptr));
}
CASE(writes)
{
    Stream s;
    Device<uint32_t> words(3, 0u);
    CHECK(hipStreamWriteValue32(s, words.at + 1, 0x70F0F0FF, 0));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(words.host() == (std::vector<uint32_t>{0, 0x70F0F0FF, 0}));
    Device<uint64_t> wide(2, uint64_t(0));
    CHECK(hipStreamWriteValue64(s, wide.at + 1, 0x7FFF0000FFFF0000, 0));
    CHECK(hipStreamSynchronize(s));
    REQUIRE(wide.host() == (std::vector<uint64_t>{0, 0x7FFF0000FFFF0000}));
}
CASE(registered_memory)
{
    alignas(8) static uint32_t word[2];
    void *at;
    CHECK(hipHostRegister(word, sizeof word, hipHostRegisterDefault));
    CHECK(hipHostGetDevicePointer(&at, word, 0));
    CHECK(hipStreamWriteValue32(nullptr, word, 3, 0));
    CHECK(hipStreamWriteValue32(nullptr, static_cast<uint32_t *>(at) + 1, 4, 0));
    CHECK(hipStreamSynchronize(nullptr));
    EQUAL(3u, word[0]);
    EQUAL(4u, word[1]);
    CHECK(hipHostUnregister(word));
}
CASE(calls_return_while_their_stream_is_held)
{
    Stream s;
    Pinned<uint64_t> word(1);
    returns_while_held(s, [&] { return hipStreamWriteValue64(s, word, 1, 0); });
    returns_while_held(s, [&] { return hipStreamWaitValue64(s, word, 1, hipStreamWaitValueEq, ~0ull); });
}
CASE(one_stream_waits_for_another)
{
    Stream first, second;
    Device<uint64_t> word(1, uint64_t(0)), to(1, uint64_t(0));
    CHECK(hipStreamWaitValue64(second, word, 9, hipStreamWaitValueGte, ~0ull));
    set<<<1, 1, 0, second>>>(to, 2);
    GIVES(hipErrorNotReady, hipStreamQuery(second));
    CHECK(hipStreamWriteValue64(first, word, 9, 0));
    CHECK(hipStreamSynchronize(second));
    REQUIRE(to.all_are(2));
}
CASE(a_kernel_writes_the_word)
{
    Stream first, second;
    Device<uint64_t> word(1, uint64_t(0));
    CHECK(hipStreamWaitValue64(second, word, 9, hipStreamWaitValueEq, ~0ull));
    set<<<1, 1, 0, first>>>(word, 9);
    CHECK(hipStreamSynchronize(second));
}
CASE(many_streams_wait_at_once)
{
    constexpr int MANY = 12;
    std::vector<Stream> streams(MANY);
    Pinned<uint32_t> words(MANY, 0u);
    for (int i = 0; i < MANY; i++)
        CHECK(hipStreamWaitValue32(streams[size_t(i)], &words[i], 1, hipStreamWaitValueEq, ~0u));
    for (int i = MANY; i--;)
        words[i] = 1;
    for (const Stream &s : streams)
        CHECK(hipStreamSynchronize(s));
}
CASE(refused)
{
    int host[2] = {0, 0};
    Device<uint64_t> word(1, uint64_t(0));
    auto bad = reinterpret_cast<hipStream_t>(0xFFFF);
    for (void *at : {static_cast<void *>(nullptr), static_cast<void *>(host), static_cast<void *>(word.at + (1 << 20))}) {
        GIVES(hipErrorInvalidValue, hipStreamWriteValue32(nullptr, at, 0, 0));
        GIVES(hipErrorInvalidValue, hipStreamWriteValue64(nullptr, at, 0, 0));
        GIVES(hipErrorInvalidValue, hipStreamWaitValue32(nullptr, at, 0, hipStreamWaitValueGte, ~0u));
        GIVES(hipErrorInvalidValue, hipStreamWaitValue64(nullptr, at, 0, hipStreamWaitValueGte, ~0ull));
    }
    GIVES(hipErrorInvalidValue, hipStreamWaitValue32(nullptr, word, 0, 4, ~0u));
    GIVES(hipErrorInvalidValue, hipStreamWaitValue64(nullptr, word, 0, ~0u, ~0ull));
    GIVES(hipErrorContextIsDestroyed, hipStreamWriteValue32(bad, word, 0, 0));
    GIVES(hipErrorContextIsDestroyed, hipStreamWriteValue64(bad, word, 0, 0));
    GIVES(hipErrorContextIsDestroyed, hipStreamWaitValue32(bad, word, 0, 0, ~0u));
    GIVES(hipErrorContextIsDestroyed, hipStreamWaitValue64(bad, word, 0, 0, ~0ull));
}

#if HIP_VERSION >= 60400000
static hipStreamBatchMemOpParams operation(hipStreamBatchMemOpType type, void *at, uint64_t value, unsigned flags)
{
    hipStreamBatchMemOpParams made = {};
    made.writeValue.operation = type;
    made.writeValue.address = hipDeviceptr_t(at);
    made.writeValue.value64 = value;
    made.writeValue.flags = flags;
    return made;
}
CASE(batches_are_done_in_their_order)
{
    Stream s;
    Pinned<uint64_t> words(3, uint64_t(0));
    hipStreamBatchMemOpParams all[] = {
        operation(hipStreamMemOpWriteValue32, &words[0], 7, 0),
        operation(hipStreamMemOpWaitValue32, &words[0], 7, hipStreamWaitValueEq),
        operation(hipStreamMemOpWaitValue64, &words[1], 1ull << 40, hipStreamWaitValueGte),
        operation(hipStreamMemOpWriteValue64, &words[2], 1ull << 41, 0),
    };
    CHECK(hipStreamBatchMemOp(s, 4, all, 0));
    REQUIRE(soon([&] { return words[0] == 7; }));
    EQUAL(0u, words[2]);
    words[1] = 1ull << 40;
    CHECK(hipStreamSynchronize(s));
    EQUAL(1ull << 41, words[2]);
}
CASE(batches_refuse)
{
    Device<uint64_t> word(1, uint64_t(0));
    std::vector<hipStreamBatchMemOpParams> all(257, operation(hipStreamMemOpWriteValue32, word, 1, 0));
    auto bad = reinterpret_cast<hipStream_t>(-1);
    CHECK(hipStreamBatchMemOp(nullptr, 256, all.data(), 0));
    GIVES(hipErrorInvalidValue, hipStreamBatchMemOp(nullptr, 257, all.data(), 0));
    GIVES(hipErrorInvalidValue, hipStreamBatchMemOp(nullptr, 0, all.data(), 0));
    GIVES(hipErrorInvalidValue, hipStreamBatchMemOp(nullptr, unsigned(-4), all.data(), 0));
    GIVES(hipErrorInvalidValue, hipStreamBatchMemOp(nullptr, 1, nullptr, 0));
    GIVES(hipErrorInvalidValue, hipStreamBatchMemOp(nullptr, 1, all.data(), 1));
    GIVES(hipErrorContextIsDestroyed, hipStreamBatchMemOp(bad, 1, all.data(), 0));
    all[0].operation = hipStreamMemOpBarrier;
    GIVES(hipErrorInvalidValue, hipStreamBatchMemOp(nullptr, 2, all.data(), 0));
    all[0] = operation(hipStreamMemOpWaitValue32, word, 1, 9);
    GIVES(hipErrorInvalidValue, hipStreamBatchMemOp(nullptr, 1, all.data(), 0));
    CHECK(hipStreamSynchronize(nullptr));
}
#endif
