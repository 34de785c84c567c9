// cflags: -O1 -no-pie -fno-pie
/* Not position-independent, lazily bound PLT. */
#include "unw_chain.h"
