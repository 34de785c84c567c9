// cflags: -O2 -fcf-protection=none -Wl,-z,lazy
/* Calls of libraries are bound when they are first made. */
#include "zoo.h"
