#include "keyed.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Open addressing; a search ends at the next hole. */
static const void *key_of(const char *row) { return *(const void *const *)row; }

static char *row_at(const struct keyed *table, size_t place) { return table->rows + place * table->row_bytes; }

static size_t home(const struct keyed *table, const void *key)
{
    return ((uintptr_t)key * 0x9E3779B97F4A7C15u >> 32) & (table->room - 1);
}

static char *place_of(const struct keyed *table, const void *key)
{
    size_t place = home(table, key);
    while (key_of(row_at(table, place)) && key_of(row_at(table, place)) != key)
        place = (place + 1) & (table->room - 1);
    return row_at(table, place);
}

void *keyed_find(const struct keyed *table, const void *key)
{
    char *row = table->room && key ? place_of(table, key) : NULL;
    return row && key_of(row) ? row : NULL;
}

void *keyed_next(const struct keyed *table, const void *row)
{
    size_t place = row ? (size_t)((const char *)row - table->rows) / table->row_bytes + 1 : 0;
    while (place < table->room && !key_of(row_at(table, place)))
        place++;
    return place < table->room ? row_at(table, place) : NULL;
}

static void grow(struct keyed *table)
{
    struct keyed larger = *table;
    larger.room = table->room ? 2 * table->room : 256;
    larger.rows = calloc(larger.room, table->row_bytes);
    if (!larger.rows)
        return;
    for (char *row = NULL; (row = keyed_next(table, row));)
        memcpy(place_of(&larger, key_of(row)), row, table->row_bytes);
    free(table->rows);
    *table = larger;
}

void *keyed_add(struct keyed *table, const void *key)
{
    if (2 * table->count >= table->room)
        grow(table);
    if (!key || table->count + 1 >= table->room)
        return NULL;
    char *row = place_of(table, key);
    table->count += !key_of(row);
    *(const void **)row = key;
    return row;
}

void keyed_remove(struct keyed *table, void *row)
{
    size_t last = table->room - 1, hole = (size_t)((char *)row - table->rows) / table->row_bytes;
    const void *key;
    table->count--;
    for (size_t place = (hole + 1) & last; (key = key_of(row_at(table, place))); place = (place + 1) & last)
        if (((place - home(table, key)) & last) >= ((place - hole) & last)) {
            memcpy(row_at(table, hole), row_at(table, place), table->row_bytes);
            hole = place;
        }
    memset(row_at(table, hole), 0, table->row_bytes);
}
