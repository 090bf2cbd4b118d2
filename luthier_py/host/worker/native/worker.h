/* What the files of the worker's library share. */
#ifndef LUTHIER_WORKER_H
#define LUTHIER_WORKER_H

#include "worker_layout.h" /* generated: what Python has, too */

#define PUBLIC __attribute__((visibility("default")))

#endif
