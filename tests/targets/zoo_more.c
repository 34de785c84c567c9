// machine: x86_64
// cflags: -O2 -DZOO_MORE
/* More kinds of stacks, optimized. */
#include "zoo.h"
