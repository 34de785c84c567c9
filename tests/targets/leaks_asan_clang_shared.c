// cc: clang
// cflags: -fsanitize=address -shared-libasan -s
/* AddressSanitizer in clang's shared library. */
#include "leaks.h"
