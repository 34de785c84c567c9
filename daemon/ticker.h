/*
 * The clock of the ticks: a timer that rings at each, and their numbers.
 */
#ifndef DAEMON_TICKER_H
#define DAEMON_TICKER_H

#include <stdbool.h>

#include "lib/base/clock.h"
#include "lib/base/loop.h"

/* All 0: stopped. */
struct ticker {
	struct loop_source *source; /* NULL: stopped */
	int fd;
	uint64_t epoch_ns, period_ns;
	uint64_t tick; /* the last that was taken */
};

/*
 * Tick n is at epoch_ns + n * period_ns of CLOCK_MONOTONIC; fn is called at
 * each. Where it goes already: 0 if the two are the same, else -EPROTO.
 */
must_check int ticker_start(struct ticker *t, struct loop *loop,
			    uint64_t epoch_ns, uint64_t period_ns, loop_fn fn);
/* It does not ring any more; takes one that is stopped. */
void ticker_stop(struct ticker *t, struct loop *loop);

/* The tick at that time. */
uint64_t ticker_at(const struct ticker *t, uint64_t now_ns);

/*
 * Takes what has rung. False: nothing that was not taken before. If t->tick is
 * not the one before by one, those in between have come too late.
 */
bool ticker_take(struct ticker *t, uint64_t now_ns);

static inline uint64_t ticker_time(const struct ticker *t, uint64_t tick)
{
	return t->epoch_ns + tick * t->period_ns;
}

#endif
