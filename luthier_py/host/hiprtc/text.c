/* A message that grows, and strings out of one. */
#include "hiprtc.h"

#include <stdlib.h>
#include <string.h>

void text_add(struct text *text, const void *data, size_t bytes)
{
    if (!text->bad && text->room - text->bytes < bytes) {
        size_t room = text->room * 2 > text->bytes + bytes ? text->room * 2 : text->bytes + bytes;
        char *larger = realloc(text->at, room);
        text->bad = larger == NULL;
        if (larger) {
            text->at = larger;
            text->room = room;
        }
    }
    if (text->bad || !bytes)
        return;
    memcpy(text->at + text->bytes, data, bytes);
    text->bytes += bytes;
}

void text_number(struct text *text, uint32_t number) { text_add(text, &number, sizeof number); }

void text_counted(struct text *text, const void *data, size_t bytes)
{
    text->bad |= bytes > UINT32_MAX;
    text_number(text, (uint32_t)bytes);
    text_add(text, data, bytes);
}

void text_string(struct text *text, const char *string) { text_counted(text, string, strlen(string)); }

char *take_string(struct cursor *cursor, size_t *bytes)
{
    *bytes = take32(cursor);
    const void *data = take(cursor, *bytes);
    char *copy = data ? malloc(*bytes + 1) : NULL;
    cursor->bad |= copy == NULL;
    if (!copy)
        return NULL;
    memcpy(copy, data, *bytes);
    copy[*bytes] = 0;
    return copy;
}
