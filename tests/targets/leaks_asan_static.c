// cc: gcc
// cflags: -fsanitize=address -static-libasan -s
/* AddressSanitizer in the program, which is stripped: no symbol names it. */
#include "leaks.h"
