// machine: x86_64
// cflags: -O2 -fcf-protection=full -fstack-clash-protection -fstack-protector-all -Wl,-z,now
/* Hardened: endbr64, .plt.sec, full RELRO, probes of large frames. */
#include "zoo.h"
