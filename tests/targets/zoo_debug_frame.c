// cflags: -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -g
/* CFI in .debug_frame only. */
#include "zoo.h"
