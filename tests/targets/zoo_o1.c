// cflags: -O1
/* Optimized a little: no tail calls. */
#include "zoo.h"
