// cflags: -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -g -gz=zlib
/* CFI in a compressed .debug_frame only. */
#include "zoo.h"
