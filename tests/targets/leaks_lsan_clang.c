// cc: clang
// cflags: -fsanitize=leak
/* LeakSanitizer alone, as clang links it. */
#include "leaks.h"
