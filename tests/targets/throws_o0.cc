// cflags: -O0
#include "throws.h"
