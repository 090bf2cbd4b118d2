/* Textures and surfaces: kernels read and write them by image instructions. CDNA's devices have none, and the emulator has none
 * for other targets either. So what makes or asks for one is refused by a check (`images` in functions.txt), and arrays with
 * levels, which nothing else could use, too. The attributes of devices say the same (host/worker/device/properties.py).
 */
#include "luthier.h"

hipError_t check_images(void) { return hipErrorNotSupported; }

hipError_t hipDestroyTextureObject(void *texture) { return texture ? check_images() : hipSuccess; }
