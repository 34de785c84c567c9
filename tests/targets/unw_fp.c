// cflags: -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer
/* Optimized with frame pointers, as Fedora and Ubuntu do. */
#include "unw_chain.h"
