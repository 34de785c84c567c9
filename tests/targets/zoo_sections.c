// cflags: -O2 -ffunction-sections -Wl,--gc-sections
/* A section for each function; those that nobody needs are gone. */
#include "zoo.h"
