// What every program begins with.
#pragma once
#include <hip/hip_runtime.h>

#include "device_library.h"
