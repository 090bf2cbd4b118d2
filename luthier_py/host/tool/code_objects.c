/* Requests to the worker about the program's code objects and kernels: once for each device. */
#include "driver.h"

#include <stdlib.h>

struct sent { struct sent *next; int device; bool good; }; /* the worker has it for this device, or refuses it */

static atomic_uint last_number;

uint32_t code_object_number(void) { return ++last_number; }

/* Of a bundle the worker chooses the code object for the device. */
static bool send(struct code_object *object, int device)
{
    struct sent *sent = object->sent;
    while (sent && sent->device != device)
        sent = sent->next;
    if (sent || !(sent = calloc(1, sizeof *sent)))
        return sent && sent->good;
    *sent = (struct sent){object->sent, device, false};
    object->sent = sent;
    char properties[PROPERTIES_BYTES] = {0};
    uint32_t form;
    sent->good = driver()->describe(device, &form, properties) && object->data &&
                 clone_image(object->number, device, form, properties, object->data, object->bytes);
    return sent->good;
}

enum answer kernel_ask(struct code_object *object, int device, const char *kernel, struct asked *asked)
{
    enum answer answer = REFUSED;
    asked->explained = send(object, device);
    if (asked->explained)
        answer = clone_ask(object->number, device, kernel, false, &asked->made);
    asked->selected = answer != NOT_CHOSEN;
    asked->explained &= answer != CLONED;
    return answer;
}

void code_object_forget(struct code_object *object)
{
    if (object->sent)
        tool_forget(object->number);
    for (struct sent *sent; (sent = object->sent);) {
        object->sent = sent->next;
        free(sent);
    }
}
