/* The program's executables, as it freezes and destroys them: their kernels come and go. */
#include <stdlib.h>

#include "hsa_tool.h"

hsa_status_t tool_executable_freeze(hsa_executable_t executable, const char *options)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    hsa_status_t status = rocr.hsa_executable_freeze(executable, options);
    if (status != HSA_SUCCESS || !runtime_there)
        return status;
    if (!objects_note(executable) && !atomic_flag_test_and_set(&said))
        say("luthier: kernels run as they are: this HSA runtime has no extension that tells what is loaded");
    return status;
}

/* What is not in the table any more. Launches of it are done, or the program may not unload it. */
static void drop(struct image *image)
{
    for (struct kernel *kernel; (kernel = image_take_kernel(image));) {
        if (in_flight_wait(kernel)) {
            instances_send(kernel);
            instances_drop(kernel);
            clone_free(&kernel->asked.made);
            free(kernel->name);
            free(kernel);
        }
    }
    image_free(image);
}

void executables_drop(void)
{
    for (struct image *image; (image = objects_take((hsa_executable_t){0}, true));)
        drop(image);
}

hsa_status_t tool_executable_destroy(hsa_executable_t executable)
{
    for (struct image *image; runtime_there && (image = objects_take(executable, false));)
        drop(image);
    return rocr.hsa_executable_destroy(executable);
}
