// cflags: -O3 -fcf-protection=none
/* Aggressively inlined, without endbr64. */
#include "unw_chain.h"
