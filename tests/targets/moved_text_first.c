// cflags: -Wl,-z,noseparate-code
/* The text segment begins with the file: no other part of the file is below it. */
#include "moved_text.h"
