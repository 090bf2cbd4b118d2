// Fills: what they write, and which places they refuse.
#include "case.h"

CASE(fill_of_foreign_memory_is_invalid)
{
    char host[64];
    GIVES(hipErrorInvalidValue, hipMemset(host, 1, sizeof host));
}
