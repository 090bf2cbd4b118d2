/* Arrays and the driver's copies through libamdhip64.so.N, where N is argv[1]: structures are as that version has them, and
 * hipCreateChannelDesc gives one by value. Layouts: driver_types.h of HIP 5.2 and 7.1. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATING = 2, TO_DEVICE = 1, TO_HOST = 2 };
#define REQUIRE(good) do { if (!(good)) { printf("line %d: %s\n", __LINE__, #good); exit(1); } } while (0)

struct channels { int x, y, z, w, kind; };
struct rows {
    size_t from_x, from_y; int from_type; const void *from_host; void *from_device, *from_array; size_t from_pitch;
    size_t to_x, to_y; int to_type; void *to_host, *to_device, *to_array; size_t to_pitch, width, height;
};
#define BOX(name, number) \
    struct name { \
        number from_x, from_y, from_z, from_level; int from_type; const void *from_host; void *from_device, *from_array; \
        number from_pitch, from_height, to_x, to_y, to_z, to_level; int to_type; void *to_host, *to_device, *to_array; \
        number to_pitch, to_height, width, height, depth; \
    }
BOX(narrow_box, unsigned);
BOX(wide_box, size_t);
struct shown { void *data; struct channels desc; unsigned type, width, height, depth; int format; unsigned channels; };

static void *library;

static void *find(const char *name)
{
    void *function = dlsym(library, name);
    REQUIRE(function);
    return function;
}

static int copy_box(int major, void *array, float *to)
{
    int (*copy)(const void *) = (int (*)(const void *))find("hipDrvMemcpy3D");
    struct narrow_box narrow = {.from_x = 4, .from_y = 1, .from_type = 2, .from_array = array, .to_type = 0, .to_host = to,
                                .to_pitch = 8, .width = 8, .height = 2, .depth = 1};
    struct wide_box wide = {.from_x = 4, .from_y = 1, .from_type = 10, .from_array = array, .to_type = 1, .to_host = to,
                            .to_pitch = 8, .width = 8, .height = 2, .depth = 1};
    return copy(major > 5 ? (void *)&wide : (void *)&narrow);
}

int main(int count, char **words)
{
    char name[64];
    int major = count > 1 ? atoi(words[1]) : 7;
    snprintf(name, sizeof name, "libamdhip64.so.%d", major);
    library = dlopen(name, RTLD_NOW);
    REQUIRE(library);
    struct channels (*create)(int, int, int, int, int) = (struct channels (*)(int, int, int, int, int))find("hipCreateChannelDesc");
    int (*allocate)(void **, const struct channels *, size_t, size_t, unsigned) =
        (int (*)(void **, const struct channels *, size_t, size_t, unsigned))find("hipMallocArray");
    int (*copy_rows)(const struct rows *) = (int (*)(const struct rows *))find("hipMemcpyParam2D");
    int (*release)(void *) = (int (*)(void *))find("hipFreeArray");

    struct channels desc = create(32, 0, 0, 0, FLOATING);
    REQUIRE(desc.x == 32 && desc.y == 0 && desc.z == 0 && desc.w == 0 && desc.kind == FLOATING);
    void *array;
    REQUIRE(allocate(&array, &desc, 4, 4, 0) == 0);
    struct shown *shown = array;
    REQUIRE(shown->data && shown->width == 4 && shown->height == 4 && shown->channels == 1 && shown->desc.x == 32);
    float values[16], back[4] = {0};
    for (int i = 0; i < 16; i++)
        values[i] = (float)i;
    struct rows rows = {.from_type = major > 5 ? 1 : 0, .from_host = values, .from_pitch = 16, .to_type = major > 5 ? 10 : 2,
                        .to_array = array, .width = 16, .height = 4};
    REQUIRE(copy_rows(&rows) == 0);
    REQUIRE(copy_box(major, array, back) == 0);
    REQUIRE(back[0] == 5 && back[1] == 6 && back[2] == 9 && back[3] == 10);
    REQUIRE(release(array) == 0 && release(array) == 709);
    puts("PASSED");
    return 0;
}
