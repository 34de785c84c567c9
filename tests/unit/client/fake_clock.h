/* The library's clock, in place of lib/client/clock.c. */
#ifndef TESTS_UNIT_CLIENT_FAKE_CLOCK_H
#define TESTS_UNIT_CLIENT_FAKE_CLOCK_H

#include <stdint.h>

/* What it shows; 0: the real one. */
extern uint64_t fake_clock_ns;

#endif
