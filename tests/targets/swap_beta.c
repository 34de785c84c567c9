// cflags: -shared -fPIC
#define SWAP_WORK  beta
#define SWAP_BYTES 640

#include "swap.h"
