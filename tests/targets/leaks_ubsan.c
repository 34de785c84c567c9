// cc: gcc
// cflags: -fsanitize=undefined -static-libubsan
/* UndefinedBehaviorSanitizer does not trace. */
#include "leaks.h"
