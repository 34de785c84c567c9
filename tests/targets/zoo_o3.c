// cflags: -O3 -funroll-loops
/* Optimized as far as gcc goes. */
#include "zoo.h"
