// cc: clang
// cflags: -O2
/* By another compiler. */
#include "zoo.h"
