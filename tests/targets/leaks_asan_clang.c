// cc: clang
// cflags: -fsanitize=address -s
/* AddressSanitizer in the program, as clang links it; the program exports its symbols. */
#include "leaks.h"
