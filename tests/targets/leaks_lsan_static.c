// cc: gcc
// cflags: -fsanitize=leak -static-liblsan -s
/* LeakSanitizer alone, in the program, which is stripped. */
#include "leaks.h"
