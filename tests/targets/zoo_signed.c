// machine: aarch64
// cflags: -O2 -mbranch-protection=standard -fstack-clash-protection -fstack-protector-all -Wl,-z,now
/* Hardened: signed return addresses (paciasp), bti, full RELRO, probes of large frames. */
#include "zoo.h"
