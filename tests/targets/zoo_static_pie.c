// cflags: -O2 -static-pie -fPIE
/* libc within, anywhere. */
#include "zoo.h"
