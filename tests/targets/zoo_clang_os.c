// cc: clang
// cflags: -Oz -fomit-frame-pointer
/* By another compiler, for size. */
#include "zoo.h"
