/*
 * The clock of the ticks: a timer that rings at each, or leaves out those at
 * which there is nothing to do, and their numbers.
 */
#ifndef DAEMON_TICKER_H
#define DAEMON_TICKER_H

#include <stdbool.h>

#include "lib/base/clock.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"
#include "lib/capture/capture.h"

/* All 0: stopped. */
struct ticker {
	struct loop_source *source; /* NULL: stopped */
	int fd;
	uint64_t epoch_ns, period_ns;
	uint64_t tick;	  /* the last that was taken */
	uint64_t from;	  /* it rings at this one, and each that follows */
	uint64_t planned; /* what was t->tick when that was decided */
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
 * past the one at which it was to ring, that and those in between are late.
 */
bool ticker_take(struct ticker *t, uint64_t now_ns);

/*
 * The same where something else rings at each tick: the timer is left as it is
 * after it has rung, and rings no more. So fn is called in each round of the
 * loop, and no call is made for it. After the next ticker_take all is as
 * before.
 */
bool ticker_pass(struct ticker *t, uint64_t now_ns);

/* At which it rings next. */
static inline uint64_t ticker_next(const struct ticker *t)
{
	return max_u64(t->from, t->tick + 1);
}

/*
 * It rings at that tick, or at the next one if that is past, and then at each
 * that follows: as long as none is left out, a tick takes no call for it.
 * Returns 0 or -errno.
 */
must_check int ticker_ring_at(struct ticker *t, uint64_t tick);

/*
 * After whatever was done with that capture: it rings when there is something
 * to do for it. Takes one that is stopped. Returns 0 or -errno.
 */
must_check int ticker_plan(struct ticker *t, const struct capture *capture);

static inline uint64_t ticker_time(const struct ticker *t, uint64_t tick)
{
	return t->epoch_ns + tick * t->period_ns;
}

#endif
