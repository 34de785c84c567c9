// cflags: -O2 -fno-pie -no-pie
/* At a fixed address. */
#include "zoo.h"
