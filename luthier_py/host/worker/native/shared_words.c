/* Words that a program and its worker change, each in one step. */
#include "control.h"
#include "worker.h"

PUBLIC void luthier_add_32(_Atomic uint32_t *word, uint32_t value) { *word += value; }
PUBLIC void luthier_add_64(_Atomic uint64_t *word, uint64_t value) { *word += value; }
PUBLIC void luthier_wake(_Atomic uint32_t *word) { futex_wake(word); } /* everybody who waits for it, in whichever process */
