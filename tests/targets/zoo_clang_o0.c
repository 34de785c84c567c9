// cc: clang
// cflags: -O0
/* By another compiler, not optimized. */
#include "zoo.h"
