// cc: musl-gcc
// cflags: -O2 -static -DZOO_NO_CONTEXT
/* With musl within. */
#include "zoo.h"
