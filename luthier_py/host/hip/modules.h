/* Code objects of programs: their kernels and variables. */
#ifndef LUTHIER_MODULES_H
#define LUTHIER_MODULES_H

#include "luthier.h"

/* modules.c */
struct argument { uint32_t offset, bytes; };
struct kernel {
    struct module *module;
    uint32_t index;
    char *name;
    uint32_t kernarg_bytes, lds_bytes, private_bytes, vgprs, sgprs, max_threads, argument_count;
    struct argument *arguments;
    bool whole_groups;    /* compiled for these alone */
    bool dynamic_lds_set; /* by hipFuncSetAttribute */
    int dynamic_lds;
};
struct variable {
    char *name; void *address; size_t bytes;
    void *managed; size_t managed_bytes; /* its memory, if it is a managed variable of a module */
};
struct module {
    uint32_t id, prints, kernel_count, variable_count;
    int device;
    struct kernel *kernels;
    struct variable *variables;
};
hipError_t module_load(struct module **module, int device, const void *image, size_t bytes);
hipError_t module_unload(struct module *module);
hipError_t module_of_memory(const void *image, struct module **module); /* of the program's own, on the current device */
hipError_t module_of_file(const char *file, struct module **module);
struct kernel *module_kernel(const struct module *module, const char *name);
struct variable *module_variable(const struct module *module, const char *name);

/* image.c */
size_t image_bytes(const void *image);   /* of an ELF file or a bundle in memory, as its headers say; 0 for anything else */
bool image_is_known(const void *image);  /* whether it begins as one of these */
bool image_is_there(const void *image, size_t bytes);

/* registry.c */
hipError_t function_kernel(const void *function, int device, struct kernel **kernel);
hipError_t symbol_variable(const void *symbol, int device, struct variable *variable);

/* hostcalls.c */
hipError_t hostcalls_ready(void); /* before a kernel that prints is launched */

#endif
