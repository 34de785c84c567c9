// cc: gcc
// cflags: -fsanitize=leak
/* LeakSanitizer alone, in liblsan.so. */
#include "leaks.h"
