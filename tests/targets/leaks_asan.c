// cc: gcc
// cflags: -fsanitize=address
/* AddressSanitizer in a shared library, libasan.so, as gcc links it. */
#include "leaks.h"
