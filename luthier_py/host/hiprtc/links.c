/* Linking bitcode: hiprtcLink..., and hipLink..., which are the same with HIP's errors. */
#include "hiprtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* hipJitOption (hip/linker_types.h), as far as it means anything here. */
enum {
    OPTION_INFO_LOG = 3, OPTION_INFO_LOG_BYTES, OPTION_ERROR_LOG, OPTION_ERROR_LOG_BYTES, OPTION_OPTIMIZATION,
    OPTION_SYMBOL_NAMES = 17, OPTION_SYMBOL_ADDRESSES, OPTION_END = 30,
    OPTION_COMPILER = 10000, OPTION_COMPILER_COUNT
};
enum { LAST_FOREIGN_INPUT = 5 }; /* CUDA's kinds come first */
/* hipError_t */
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONFIGURATION = 9, INVALID_IMAGE = 200, INVALID_HANDLE = 400 };

struct output { char *log; size_t bytes; }; /* where the caller reads the linker's messages */
struct link {
    struct text options, inputs; /* as LINK has them */
    uint32_t option_count, input_count;
    struct output info, error;
};

API int hiprtcLinkCreate(unsigned count, const int *options, void **values, struct link **link);
API int hiprtcLinkAddFile(struct link *link, int input, const char *path, unsigned count, const int *options, void **values);
API int hiprtcLinkAddData(struct link *link, int input, const void *image, size_t bytes, const char *name, unsigned count,
                          const int *options, void **values);
API int hiprtcLinkComplete(struct link *link, void **binary, size_t *bytes);
API int hiprtcLinkDestroy(struct link *link);
/* Behind the checks of the HIP runtime's table, as its sources are: what programs call remembers the error. */
#define BEHIND(name) __asm__("unchecked_" #name)
int hipLinkCreate(unsigned count, const int *options, void **values, struct link **link) BEHIND(hipLinkCreate);
int hipLinkAddFile(struct link *link, int input, const char *path, unsigned count, const int *options, void **values)
    BEHIND(hipLinkAddFile);
int hipLinkAddData(struct link *link, int input, const void *image, size_t bytes, const char *name, unsigned count,
                   const int *options, void **values) BEHIND(hipLinkAddData);
int hipLinkComplete(struct link *link, void **binary, size_t *bytes) BEHIND(hipLinkComplete);
int hipLinkDestroy(struct link *link) BEHIND(hipLinkDestroy);

static bool is_link(const struct link *link) { return handle_is(link, HANDLE_LINK); }

static void add_option(struct link *link, const char *option)
{
    text_string(&link->options, option);
    link->option_count++;
}

static bool add_compiler_options(struct link *link, const char *const *options, size_t count)
{
    for (size_t i = 0; options && i < count; i++) {
        if (!options[i])
            return false;
        add_option(link, options[i]);
    }
    return true;
}

/* Values are numbers or pointers, each in a void *. Options of CUDA alone are skipped. */
static bool read_options(struct link *link, unsigned count, const int *options, void **values)
{
    const char *const *compiler = NULL;
    size_t compiler_count = 0;
    char level[16] = "-O3";
    for (unsigned i = 0; i < count; i++) {
        bool pointer = options[i] == OPTION_INFO_LOG || options[i] == OPTION_ERROR_LOG || options[i] == OPTION_COMPILER ||
                       options[i] == OPTION_SYMBOL_NAMES || options[i] == OPTION_SYMBOL_ADDRESSES;
        if (pointer && !values[i])
            return false;
        switch (options[i]) {
        case OPTION_INFO_LOG: link->info.log = values[i]; break;
        case OPTION_INFO_LOG_BYTES: link->info.bytes = (size_t)values[i]; break;
        case OPTION_ERROR_LOG: link->error.log = values[i]; break;
        case OPTION_ERROR_LOG_BYTES: link->error.bytes = (size_t)values[i]; break;
        case OPTION_OPTIMIZATION: snprintf(level, sizeof level, "-O%u", (unsigned)(size_t)values[i]); break;
        case OPTION_COMPILER: compiler = values[i]; break;
        case OPTION_COMPILER_COUNT: compiler_count = (size_t)values[i]; break;
        }
    }
    add_option(link, level);
    return add_compiler_options(link, compiler, compiler_count);
}

static void link_free(struct link *link)
{
    free(link->options.at);
    free(link->inputs.at);
    free(link);
}

int hiprtcLinkCreate(unsigned count, const int *options, void **values, struct link **link)
{
    if (!link || (count && (!options || !values)))
        return HIPRTC_ERROR_INVALID_INPUT;
    struct link *made = calloc(1, sizeof *made);
    if (!made)
        return HIPRTC_ERROR_OUT_OF_MEMORY;
    if (!read_options(made, count, options, values)) {
        link_free(made);
        return HIPRTC_ERROR_INVALID_OPTION;
    }
    if (!handle_add(made, HANDLE_LINK)) {
        link_free(made);
        return HIPRTC_ERROR_OUT_OF_MEMORY;
    }
    *link = made;
    return HIPRTC_SUCCESS;
}

static int add_input(struct link *link, int input, const void *data, size_t bytes)
{
    if (input != INPUT_BITCODE && input != INPUT_BUNDLED_BITCODE) {
        say("hiprtc: of inputs to link, only bitcode and bundled bitcode are supported");
        return HIPRTC_ERROR_PROGRAM_CREATION_FAILURE;
    }
    text_number(&link->inputs, (uint32_t)input);
    text_counted(&link->inputs, data, bytes);
    link->input_count++;
    return link->inputs.bad ? HIPRTC_ERROR_OUT_OF_MEMORY : HIPRTC_SUCCESS;
}

static bool foreign(int input) { return input >= 0 && input <= LAST_FOREIGN_INPUT; }

static int add_data(struct link *link, int input, const void *image, size_t bytes)
{
    if (!image || !bytes || foreign(input) || !is_link(link))
        return HIPRTC_ERROR_INVALID_INPUT;
    return add_input(link, input, image, bytes);
}

int hiprtcLinkAddData(struct link *link, int input, const void *image, size_t bytes, const char *name, unsigned count,
                      const int *options, void **values)
{
    (void)name, (void)count, (void)options, (void)values; /* ROCm reads none of them */
    return input == INPUT_SPIRV ? HIPRTC_ERROR_INVALID_INPUT : add_data(link, input, image, bytes);
}

/* The whole of a file, however it grows meanwhile; NULL when it cannot be read. */
static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    struct text content = {0};
    char piece[1 << 16];
    size_t got = 0;
    while (file && (got = fread(piece, 1, sizeof piece, file)))
        text_add(&content, piece, got);
    if (!file || ferror(file) || content.bad)
        free(content.at), content.at = NULL;
    if (file)
        fclose(file);
    *bytes = content.bytes;
    return content.at;
}

static int add_file(struct link *link, int input, const char *path)
{
    if (!path || foreign(input) || !is_link(link))
        return HIPRTC_ERROR_INVALID_INPUT;
    size_t bytes;
    char *content = read_file(path, &bytes);
    int result = content ? add_input(link, input, content, bytes) : HIPRTC_ERROR_PROGRAM_CREATION_FAILURE;
    free(content);
    return result;
}

int hiprtcLinkAddFile(struct link *link, int input, const char *path, unsigned count, const int *options, void **values)
{
    (void)count, (void)options, (void)values;
    return input == INPUT_SPIRV ? HIPRTC_ERROR_INVALID_INPUT : add_file(link, input, path);
}

static void tell(const struct output *output, const char *log)
{
    if (output->log && output->bytes)
        snprintf(output->log, output->bytes, "%s", log ? log : "");
}

int hiprtcLinkComplete(struct link *link, void **binary, size_t *bytes)
{
    if (!binary || !bytes || !is_link(link))
        return HIPRTC_ERROR_INVALID_INPUT;
    char target[TARGET_BYTES];
    struct text question = {0};
    struct reply reply;
    current_target(target);
    text_string(&question, target);
    text_number(&question, link->option_count);
    text_add(&question, link->options.at, link->options.bytes);
    text_number(&question, link->input_count);
    text_add(&question, link->inputs.at, link->inputs.bytes);
    bool answered = compiler_call(MESSAGE_LINK, &question, &reply);
    free(question.at);
    if (!answered)
        return HIPRTC_ERROR_LINKING;
    struct cursor cursor = {reply.data, reply.data + reply.bytes, reply.status != 0};
    int result = (int)take32(&cursor);
    size_t log_bytes, code_bytes;
    char *log = take_string(&cursor, &log_bytes), *code = take_string(&cursor, &code_bytes);
    bool linked = !cursor.bad && result == HIPRTC_SUCCESS;
    tell(linked ? &link->info : &link->error, log);
    free(log);
    free(reply.data);
    if (!linked) {
        free(code);
        return HIPRTC_ERROR_LINKING;
    }
    *binary = code; /* for good: programs load it after they have destroyed the link, which ROCm up to 6.3 lets them */
    *bytes = code_bytes;
    return HIPRTC_SUCCESS;
}

int hiprtcLinkDestroy(struct link *link)
{
    if (!handle_remove(link, HANDLE_LINK))
        return HIPRTC_ERROR_INVALID_INPUT;
    link_free(link);
    return HIPRTC_SUCCESS;
}

/* What hipLink... says to the same (clr, hip_module.cpp). */
static int hip_error(int result)
{
    switch (result) {
    case HIPRTC_SUCCESS: return 0;
    case HIPRTC_ERROR_INVALID_INPUT: return INVALID_VALUE;
    case HIPRTC_ERROR_OUT_OF_MEMORY: return OUT_OF_MEMORY;
    default: return INVALID_CONFIGURATION;
    }
}

int hipLinkCreate(unsigned count, const int *options, void **values, struct link **link)
{
    for (unsigned i = 0; options && i < count; i++)
        if (options[i] >= 0 && options[i] < OPTION_END) /* CUDA's */
            return INVALID_VALUE;
    return hip_error(hiprtcLinkCreate(count, options, values, link));
}

int hipLinkAddFile(struct link *link, int input, const char *path, unsigned count, const int *options, void **values)
{
    (void)count, (void)options, (void)values;
    return link ? hip_error(add_file(link, input, path)) : INVALID_HANDLE;
}

int hipLinkAddData(struct link *link, int input, const void *image, size_t bytes, const char *name, unsigned count,
                   const int *options, void **values)
{
    (void)name, (void)count, (void)options, (void)values;
    if (!image || !bytes)
        return INVALID_IMAGE;
    if (!foreign(input) && !is_link(link))
        return INVALID_HANDLE;
    return hip_error(add_data(link, input, image, bytes));
}

int hipLinkComplete(struct link *link, void **binary, size_t *bytes)
{
    return hip_error(hiprtcLinkComplete(link, binary, bytes));
}

int hipLinkDestroy(struct link *link) { return hip_error(hiprtcLinkDestroy(link)); }
