// cc: musl-gcc
// cflags: -O2 -DZOO_NO_CONTEXT
/* With musl, which has no call frame information. */
#include "zoo.h"
