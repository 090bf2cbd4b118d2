/* Programs: their source and headers, what compiling them gave, and the names that they requested.
 *
 * Arguments are judged as ROCm's library does (clr, hiprtc.cpp), where it looks at them at all: pointers before handles,
 * and a handle that is none is HIPRTC_ERROR_INVALID_PROGRAM. Names after compilation and before it have the errors
 * that hiprtc.h has for them.
 */
#include "hiprtc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct data { char *at; size_t bytes; };
struct expression { struct expression *next; char *text, *lowered; };
struct program {
    char *name, *source;
    struct text headers; /* as COMPILE has them */
    uint32_t header_count;
    struct expression *expressions; /* in the order in which they were added */
    bool compiled;
    struct data log, code, bitcode;
};

API int hiprtcCreateProgram(struct program **program, const char *source, const char *name, int header_count,
                            const char *const *headers, const char *const *include_names);
API int hiprtcDestroyProgram(struct program **program);
API int hiprtcCompileProgram(struct program *program, int option_count, const char *const *options);
API int hiprtcAddNameExpression(struct program *program, const char *expression);
API int hiprtcGetLoweredName(struct program *program, const char *expression, const char **lowered);
API int hiprtcGetProgramLogSize(struct program *program, size_t *bytes);
API int hiprtcGetProgramLog(struct program *program, char *log);
API int hiprtcGetCodeSize(struct program *program, size_t *bytes);
API int hiprtcGetCode(struct program *program, char *code);
API int hiprtcGetBitcodeSize(struct program *program, size_t *bytes);
API int hiprtcGetBitcode(struct program *program, char *bitcode);
API int hiprtcVersion(int *major, int *minor);
API const char *hiprtcGetErrorString(int result);

static bool is_program(const struct program *program) { return handle_is(program, HANDLE_PROGRAM); }

static void forget_results(struct program *program)
{
    struct data *results[] = {&program->log, &program->code, &program->bitcode};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        free(results[i]->at);
        *results[i] = (struct data){NULL, 0};
    }
    for (struct expression *each = program->expressions; each; each = each->next) {
        free(each->lowered);
        each->lowered = NULL;
    }
    program->compiled = false;
}

static void program_free(struct program *program)
{
    forget_results(program);
    for (struct expression *each = program->expressions, *next; each; each = next) {
        next = each->next;
        free(each->text);
        free(each);
    }
    free(program->headers.at);
    free(program->name);
    free(program->source);
    free(program);
}

int hiprtcCreateProgram(struct program **program, const char *source, const char *name, int header_count,
                        const char *const *headers, const char *const *include_names)
{
    if (!program)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!source || !*source || header_count < 0 || (header_count && (!headers || !include_names)))
        return HIPRTC_ERROR_INVALID_INPUT;
    for (int i = 0; i < header_count; i++)
        if (!headers[i] || !*headers[i] || !include_names[i] || !*include_names[i])
            return HIPRTC_ERROR_INVALID_INPUT;
    struct program *made = calloc(1, sizeof *made);
    if (!made)
        return HIPRTC_ERROR_OUT_OF_MEMORY;
    made->source = strdup(source);
    made->name = strdup(name ? name : "");
    made->header_count = (uint32_t)header_count;
    for (int i = 0; i < header_count; i++) {
        text_string(&made->headers, include_names[i]);
        text_string(&made->headers, headers[i]);
    }
    if (!made->source || !made->name || made->headers.bad || !handle_add(made, HANDLE_PROGRAM)) {
        program_free(made);
        return HIPRTC_ERROR_OUT_OF_MEMORY;
    }
    *program = made;
    return HIPRTC_SUCCESS;
}

int hiprtcDestroyProgram(struct program **program)
{
    if (!program)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (!handle_remove(*program, HANDLE_PROGRAM))
        return HIPRTC_ERROR_INVALID_PROGRAM;
    program_free(*program);
    return HIPRTC_SUCCESS;
}

static bool names_target(const char *option)
{
    static const char *const spellings[] = {"--offload-arch=", "--gpu-architecture="};
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (strncmp(option, spellings[i], strlen(spellings[i])) == 0)
            return true;
    return false;
}

static void write_question(struct text *question, struct program *program, int count, const char *const *options)
{
    char target[TARGET_BYTES] = "", folder[4096];
    bool named = false;
    for (int i = 0; i < count; i++)
        named |= names_target(options[i]);
    if (!named)
        current_target(target);
    text_string(question, getcwd(folder, sizeof folder) ? folder : "/");
    text_string(question, target);
    text_string(question, program->name);
    text_string(question, program->source);
    text_number(question, program->header_count);
    text_add(question, program->headers.at, program->headers.bytes);
    text_number(question, (uint32_t)count);
    for (int i = 0; i < count; i++)
        text_string(question, options[i]);
    uint32_t expressions = 0;
    for (const struct expression *each = program->expressions; each; each = each->next)
        expressions++;
    text_number(question, expressions);
    for (const struct expression *each = program->expressions; each; each = each->next)
        text_string(question, each->text);
}

static int read_answer(struct program *program, const struct reply *reply)
{
    struct cursor cursor = {reply->data, reply->data + reply->bytes, false};
    int result = (int)take32(&cursor);
    struct data *parts[] = {&program->log, &program->code, &program->bitcode};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        parts[i]->at = take_string(&cursor, &parts[i]->bytes);
    size_t bytes;
    for (struct expression *each = program->expressions; each && result == HIPRTC_SUCCESS; each = each->next)
        each->lowered = take_string(&cursor, &bytes);
    program->compiled = result == HIPRTC_SUCCESS && !cursor.bad;
    return cursor.bad ? HIPRTC_ERROR_INTERNAL_ERROR : result;
}

int hiprtcCompileProgram(struct program *program, int option_count, const char *const *options)
{
    if (option_count < 0 || (option_count && !options))
        return HIPRTC_ERROR_INVALID_INPUT;
    for (int i = 0; i < option_count; i++)
        if (!options[i])
            return HIPRTC_ERROR_INVALID_INPUT;
    if (!is_program(program))
        return HIPRTC_ERROR_INVALID_PROGRAM;
    struct text question = {0};
    struct reply reply;
    forget_results(program);
    write_question(&question, program, option_count, options);
    bool answered = compiler_call(MESSAGE_COMPILE, &question, &reply);
    free(question.at);
    if (!answered)
        return HIPRTC_ERROR_INTERNAL_ERROR;
    int result = reply.status ? HIPRTC_ERROR_INTERNAL_ERROR : read_answer(program, &reply);
    free(reply.data);
    return result;
}

/* Spaces, and one & before it, make no other expression. */
static bool same_expression(const char *one, const char *other)
{
    static const char blanks[] = " \t\n\r\f\v";
    one += strspn(one, blanks);
    other += strspn(other, blanks);
    one += *one == '&';
    other += *other == '&';
    for (;;) {
        one += strspn(one, blanks);
        other += strspn(other, blanks);
        if (*one != *other || !*one)
            return *one == *other;
        one++, other++;
    }
}

static struct expression *find_expression(const struct program *program, const char *text)
{
    struct expression *each = program->expressions;
    while (each && !same_expression(each->text, text))
        each = each->next;
    return each;
}

int hiprtcAddNameExpression(struct program *program, const char *expression)
{
    if (!expression || !*expression)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (!is_program(program))
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (program->compiled)
        return HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    if (find_expression(program, expression))
        return HIPRTC_SUCCESS;
    struct expression *made = calloc(1, sizeof *made), **end = &program->expressions;
    if (made)
        made->text = strdup(expression);
    if (!made || !made->text) {
        free(made);
        return HIPRTC_ERROR_OUT_OF_MEMORY;
    }
    while (*end)
        end = &(*end)->next;
    *end = made;
    return HIPRTC_SUCCESS;
}

int hiprtcGetLoweredName(struct program *program, const char *expression, const char **lowered)
{
    if (!expression || !lowered)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (!is_program(program))
        return HIPRTC_ERROR_INVALID_PROGRAM;
    if (!program->compiled)
        return HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    const struct expression *found = find_expression(program, expression);
    if (!found || !found->lowered || !*found->lowered)
        return HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
    *lowered = found->lowered;
    return HIPRTC_SUCCESS;
}

/* A log that is there is counted with the zero that ends it; one that is not has no bytes, which programs test for. */
static size_t log_bytes(const struct program *program) { return program->log.bytes ? program->log.bytes + 1 : 0; }

int hiprtcGetProgramLogSize(struct program *program, size_t *bytes)
{
    if (!bytes)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (!is_program(program))
        return HIPRTC_ERROR_INVALID_PROGRAM;
    *bytes = log_bytes(program);
    return HIPRTC_SUCCESS;
}

static int copy_out(char *to, const struct data *data, size_t bytes)
{
    if (bytes)
        memcpy(to, data->at, bytes);
    return HIPRTC_SUCCESS;
}

int hiprtcGetProgramLog(struct program *program, char *log)
{
    if (!log)
        return HIPRTC_ERROR_INVALID_INPUT;
    return is_program(program) ? copy_out(log, &program->log, log_bytes(program)) : HIPRTC_ERROR_INVALID_PROGRAM;
}

int hiprtcGetCodeSize(struct program *program, size_t *bytes)
{
    if (!bytes)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (!is_program(program))
        return HIPRTC_ERROR_INVALID_PROGRAM;
    *bytes = program->code.bytes;
    return HIPRTC_SUCCESS;
}

int hiprtcGetCode(struct program *program, char *code)
{
    if (!code)
        return HIPRTC_ERROR_INVALID_INPUT;
    return is_program(program) ? copy_out(code, &program->code, program->code.bytes) : HIPRTC_ERROR_INVALID_PROGRAM;
}

/* Only what was compiled with -fgpu-rdc has bitcode. */
int hiprtcGetBitcodeSize(struct program *program, size_t *bytes)
{
    if (!bytes)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (!is_program(program) || !program->bitcode.bytes)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    *bytes = program->bitcode.bytes;
    return HIPRTC_SUCCESS;
}

int hiprtcGetBitcode(struct program *program, char *bitcode)
{
    if (!bitcode)
        return HIPRTC_ERROR_INVALID_INPUT;
    if (!is_program(program) || !program->bitcode.bytes)
        return HIPRTC_ERROR_INVALID_PROGRAM;
    return copy_out(bitcode, &program->bitcode, program->bitcode.bytes);
}

/* As in every ROCm (clr, hiprtc.cpp). */
int hiprtcVersion(int *major, int *minor)
{
    if (!major || !minor)
        return HIPRTC_ERROR_INVALID_INPUT;
    *major = 9;
    *minor = 0;
    return HIPRTC_SUCCESS;
}

const char *hiprtcGetErrorString(int result)
{
    switch (result) {
#define RESULT(name) case name: return #name;
        ALL_RESULTS(RESULT)
#undef RESULT
    default: return "Invalid HIPRTC error code";
    }
}
