// cflags: -O2 -Wl,--no-eh-frame-hdr
/* Its .eh_frame has no search table. */
#include "zoo.h"
