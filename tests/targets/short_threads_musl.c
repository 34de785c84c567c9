// cc: musl-gcc
// cflags: -O2
#include "short_threads.c"
