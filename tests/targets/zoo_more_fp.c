// machine: x86_64
// cflags: -O2 -DZOO_MORE -fno-omit-frame-pointer
/* More kinds of stacks, with frame pointers. */
#include "zoo.h"
