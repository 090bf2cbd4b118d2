/* The parts of HSA that the tool library uses, and the tables of functions that ROCr gives to tools.
 *
 * Sources: HSA Runtime Programmer's Reference Manual 1.2 (types, packets), ROCr's hsa.h, hsa_ext_amd.h,
 * hsa_ven_amd_loader.h, amd_hsa_signal.h and hsa_api_trace.h (numbers and layouts). A table begins with its version, whose
 * second word is its size in bytes; newer runtimes add functions at the end, so a function's place is a fact.
 */
#ifndef LUTHIER_HSA_H
#define LUTHIER_HSA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t hsa_status_t;
enum { HSA_SUCCESS = 0, HSA_ERROR = 0x1000 };
typedef struct { uint64_t handle; } hsa_agent_t;
typedef struct { uint64_t handle; } hsa_signal_t;
typedef struct { uint64_t handle; } hsa_isa_t;
typedef struct { uint64_t handle; } hsa_pool_t; /* hsa_amd_memory_pool_t */
typedef struct { uint64_t handle; } hsa_executable_t;
typedef struct { uint64_t handle; } hsa_symbol_t; /* hsa_executable_symbol_t */
typedef struct { uint64_t handle; } hsa_reader_t; /* hsa_code_object_reader_t */
typedef struct { uint64_t handle; } hsa_loaded_t; /* hsa_loaded_code_object_t */

enum { HSA_AGENT_INFO_PROFILE = 4, HSA_AGENT_INFO_DEVICE = 17, HSA_AGENT_INFO_ISA = 19 };
enum { HSA_DEVICE_TYPE_CPU = 0, HSA_DEVICE_TYPE_GPU = 1 };
enum { HSA_POOL_INFO_SEGMENT = 0, HSA_POOL_INFO_FLAGS = 1, HSA_SEGMENT_GLOBAL = 0, HSA_POOL_FINE_GRAINED = 2,
       HSA_POOL_COARSE_GRAINED = 4 };
enum { HSA_ISA_INFO_NAME_LENGTH = 0, HSA_ISA_INFO_NAME = 1 };
enum { HSA_SYMBOL_KIND_KERNEL = 1 };
enum {
    HSA_SYMBOL_INFO_TYPE = 0, HSA_SYMBOL_INFO_NAME_LENGTH = 1, HSA_SYMBOL_INFO_NAME = 2, HSA_SYMBOL_INFO_VARIABLE_SIZE = 9,
    HSA_SYMBOL_INFO_GROUP_BYTES = 13, HSA_SYMBOL_INFO_PRIVATE_BYTES = 14, HSA_SYMBOL_INFO_VARIABLE_ADDRESS = 21,
    HSA_SYMBOL_INFO_KERNEL_OBJECT = 22
};
enum { HSA_CONDITION_LT = 2 };

typedef struct {
    uint32_t type, features;
    void *packets;
    hsa_signal_t doorbell;
    uint32_t size, reserved;
    uint64_t id;
} hsa_queue_t;

/* AQL packets (Platform System Architecture Specification 1.2, 2.9): 64 bytes that begin with a header. */
enum { PACKET_BYTES = 64, PACKET_INVALID = 1, PACKET_DISPATCH = 2, PACKET_BARRIER_AND = 3 };
enum { HEADER_TYPE = 0xff, HEADER_BARRIER = 1 << 8, HEADER_ACQUIRE_SYSTEM = 2 << 9, HEADER_RELEASE_SYSTEM = 2 << 11 };
enum { HEADER_FENCES = 3 << 9 | 3 << 11, BARRIER_SIGNALS = 5 };
struct dispatch {
    uint16_t header, setup, block[3], reserved;
    uint32_t items[3], private_bytes, group_bytes;
    uint64_t kernel_object, kernarg, reserved2;
    hsa_signal_t completion;
};
struct barrier {
    uint16_t header, reserved;
    uint32_t reserved2;
    hsa_signal_t after[BARRIER_SIGNALS];
    uint64_t reserved3;
    hsa_signal_t completion;
};
union packet { uint16_t header; struct dispatch dispatch; struct barrier barrier; char bytes[PACKET_BYTES]; };
_Static_assert(sizeof(union packet) == PACKET_BYTES, "an AQL packet");

/* What a signal's handle points to. */
enum { SIGNAL_USER = 1 };
struct signal_content { int64_t kind, value; uint64_t mailbox; uint32_t event, reserved; uint64_t start, end; };

typedef void packet_writer(const void *packets, uint64_t count);
typedef void packet_handler(const void *packets, uint64_t count, uint64_t index, void *data, packet_writer *write);
typedef void queue_error(hsa_status_t status, hsa_queue_t *queue, void *data);

/* Place in the table, result, name, parameters: of the core's table, and of AMD's extensions. */
#define CORE_FUNCTIONS(F)                                                                                                  \
    F(0, hsa_status_t, hsa_init, (void))                                                                                   \
    F(1, hsa_status_t, hsa_shut_down, (void))                                                                              \
    F(5, hsa_status_t, hsa_iterate_agents, (hsa_status_t (*)(hsa_agent_t, void *), void *))                                \
    F(6, hsa_status_t, hsa_agent_get_info, (hsa_agent_t, uint32_t, void *))                                                \
    F(7, hsa_status_t, hsa_queue_create,                                                                                   \
      (hsa_agent_t, uint32_t, uint32_t, queue_error *, void *, uint32_t, uint32_t, hsa_queue_t **))                        \
    F(9, hsa_status_t, hsa_queue_destroy, (hsa_queue_t *))                                                                 \
    F(11, uint64_t, hsa_queue_load_read_index_scacquire, (const hsa_queue_t *))                                            \
    F(13, uint64_t, hsa_queue_load_write_index_scacquire, (const hsa_queue_t *))                                           \
    F(17, uint64_t, hsa_queue_cas_write_index_scacq_screl, (const hsa_queue_t *, uint64_t, uint64_t))                      \
    F(35, hsa_status_t, hsa_memory_copy, (void *, const void *, size_t))                                                   \
    F(37, hsa_status_t, hsa_signal_create, (int64_t, uint32_t, const hsa_agent_t *, hsa_signal_t *))                       \
    F(38, hsa_status_t, hsa_signal_destroy, (hsa_signal_t))                                                                \
    F(40, int64_t, hsa_signal_load_scacquire, (hsa_signal_t))                                                              \
    F(42, void, hsa_signal_store_screlease, (hsa_signal_t, int64_t))                                                       \
    F(67, void, hsa_signal_subtract_screlease, (hsa_signal_t, int64_t))                                                    \
    F(84, hsa_status_t, hsa_executable_destroy, (hsa_executable_t))                                                        \
    F(86, hsa_status_t, hsa_executable_freeze, (hsa_executable_t, const char *))                                           \
    F(93, hsa_status_t, hsa_executable_symbol_get_info, (hsa_symbol_t, uint32_t, void *))                                  \
    F(98, hsa_status_t, hsa_system_get_major_extension_table, (uint16_t, uint16_t, size_t, void *))                        \
    F(109, hsa_status_t, hsa_isa_get_info_alt, (hsa_isa_t, uint32_t, void *))                                              \
    F(116, hsa_status_t, hsa_code_object_reader_create_from_memory, (const void *, size_t, hsa_reader_t *))                \
    F(117, hsa_status_t, hsa_code_object_reader_destroy, (hsa_reader_t))                                                   \
    F(118, hsa_status_t, hsa_executable_create_alt, (uint32_t, uint32_t, const char *, hsa_executable_t *))                \
    F(120, hsa_status_t, hsa_executable_load_agent_code_object,                                                            \
      (hsa_executable_t, hsa_agent_t, hsa_reader_t, const char *, hsa_loaded_t *))                                         \
    F(122, hsa_status_t, hsa_executable_get_symbol_by_name,                                                                \
      (hsa_executable_t, const char *, const hsa_agent_t *, hsa_symbol_t *))                                               \
    F(123, hsa_status_t, hsa_executable_iterate_agent_symbols,                                                             \
      (hsa_executable_t, hsa_agent_t, hsa_status_t (*)(hsa_executable_t, hsa_agent_t, hsa_symbol_t, void *), void *))
#define AMD_FUNCTIONS(F)                                                                                                   \
    F(7, hsa_status_t, hsa_amd_signal_async_handler, (hsa_signal_t, uint32_t, int64_t, bool (*)(int64_t, void *), void *)) \
    F(11, hsa_status_t, hsa_amd_memory_pool_get_info, (hsa_pool_t, uint32_t, void *))                                      \
    F(12, hsa_status_t, hsa_amd_agent_iterate_memory_pools,                                                                \
      (hsa_agent_t, hsa_status_t (*)(hsa_pool_t, void *), void *))                                                         \
    F(13, hsa_status_t, hsa_amd_memory_pool_allocate, (hsa_pool_t, size_t, uint32_t, void **))                             \
    F(14, hsa_status_t, hsa_amd_memory_pool_free, (void *))                                                                \
    F(17, hsa_status_t, hsa_amd_agents_allow_access, (uint32_t, const hsa_agent_t *, const uint32_t *, const void *))      \
    F(22, hsa_status_t, hsa_amd_memory_fill, (void *, uint32_t, size_t))                                                   \
    F(35, hsa_status_t, hsa_amd_queue_intercept_create,                                                                    \
      (hsa_agent_t, uint32_t, uint32_t, queue_error *, void *, uint32_t, uint32_t, hsa_queue_t **))                        \
    F(36, hsa_status_t, hsa_amd_queue_intercept_register, (hsa_queue_t *, packet_handler *, void *))

struct table { uint32_t major, bytes, step, reserved; void *functions[]; };
struct tables { uint32_t major, bytes, step, reserved; struct table *core, *amd; }; /* and more */

/* The loader's extension, as far as version 1.01 has it. */
enum { EXTENSION_AMD_LOADER = 0x201 };
enum {
    LOADED_KIND = 2, LOADED_AGENT = 3, LOADED_STORAGE = 4, LOADED_DATA = 5, LOADED_BYTES = 6, LOADED_DELTA = 8,
    LOADED_BASE = 9, LOADED_SIZE = 10
};
enum { LOADED_KIND_AGENT = 2, LOADED_STORAGE_MEMORY = 2 };
struct loader {
    void *others[3];
    hsa_status_t (*each)(hsa_executable_t, hsa_status_t (*)(hsa_executable_t, hsa_loaded_t, void *), void *);
    hsa_status_t (*info)(hsa_loaded_t, uint32_t, void *);
};

#endif
