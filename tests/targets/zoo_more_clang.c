// machine: x86_64
// cc: clang
// cflags: -O1 -DZOO_MORE
/* More kinds of stacks, by another compiler. */
#include "zoo.h"
