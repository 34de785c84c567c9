// cflags: -O2 -fomit-frame-pointer
#include "throws.h"
