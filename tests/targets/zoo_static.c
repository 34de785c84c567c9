// cflags: -O2 -static
/* libc within, no loader. */
#include "zoo.h"
