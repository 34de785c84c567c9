// cflags: -O0
/* Not optimized: every function keeps a frame pointer. */
#include "zoo.h"
