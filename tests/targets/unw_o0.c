// cflags: -O0
/* As compilers do it by themselves: frame pointers everywhere. */
#include "unw_chain.h"
