// cflags: -shared -fPIC
#define SWAP_WORK  alpha
#define SWAP_BYTES 64

#include "swap.h"
