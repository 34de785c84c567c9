// cc: gcc
/* No sanitizer. */
#include "leaks.h"
