/* A clock for tests of the client library, which replaces lib/client/clock.c. */
#ifndef TESTS_UNIT_CLIENT_FAKE_CLOCK_H
#define TESTS_UNIT_CLIENT_FAKE_CLOCK_H

#include <stdint.h>

/* The time that state_now_ns() returns; 0: that of the real clock. */
extern uint64_t fake_clock_ns;

#endif
