// cc: gcc
// cflags: -fsanitize=thread
/* ThreadSanitizer does not trace. */
#include "leaks.h"
