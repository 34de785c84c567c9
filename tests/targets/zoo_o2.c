// cflags: -O2
/* As distributions build. */
#include "zoo.h"
