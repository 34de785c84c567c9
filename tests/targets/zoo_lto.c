// cflags: -O2 -flto -ffunction-sections -Wl,--gc-sections
/* One unit for the linker. */
#include "zoo.h"
