// cflags: -Os
/* For size: pushes for arguments, shared epilogues. */
#include "zoo.h"
