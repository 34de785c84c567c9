// cflags: -O2
/* As distributions build: no frame pointers. */
#include "unw_chain.h"
