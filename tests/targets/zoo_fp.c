// cflags: -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer
/* With frame pointers, as Fedora and Ubuntu build. */
#include "zoo.h"
