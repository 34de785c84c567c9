// cflags: -O2 -static
/* Everything in one file, not position-independent. */
#include "unw_chain.h"
