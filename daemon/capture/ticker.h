/*
 * The clock of the ticks: a timer that rings at each, or leaves out those at
 * which there is nothing to do, and their numbers.
 */
#ifndef DAEMON_CAPTURE_TICKER_H
#define DAEMON_CAPTURE_TICKER_H

#include <stdbool.h>

#include "lib/base/clock.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"
#include "lib/capture/capture.h"

/*
 * Tick n comes at a random time in the first 15/16 of period n, so that two
 * ticks are at least 1/16 of a period apart. Ticks at equal distances fall into
 * step with timers of the target, and with what a tick does to the scheduler: a
 * thread that capture stops may lose its processor to another thread for some
 * milliseconds. A profile from such ticks has too much or too little processor
 * time. In periods of more than 100 ms, which are longer than these effects,
 * tick n comes as period n begins.
 */
#define TICKER_RANDOM_MAX_NS (100 * NS_PER_MS)

/* All 0: stopped. */
struct ticker {
	struct loop_source *source; /* NULL: stopped */
	int fd;
	uint64_t epoch_ns, period_ns;
	uint64_t tick; /* the last that was taken */
	uint64_t from; /* the timer rings, or has rung, at this one */
	bool has_rung; /* it has, and was not read (ticker_pass) */
};

/*
 * Period n begins at epoch_ns + n * period_ns of CLOCK_MONOTONIC and has tick
 * n; fn is called at each. Where it goes already: 0 if the two are the same,
 * else -EPROTO.
 */
must_check int ticker_start(struct ticker *t, struct loop *loop, uint64_t epoch_ns,
			    uint64_t period_ns, loop_fn fn);
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
 * after it has rung. So fn is called in each round of the loop, and no call is
 * made for the timer, by ticker_plan neither, until the next ticker_take.
 */
bool ticker_pass(struct ticker *t, uint64_t now_ns);

/* The last that was taken. */
struct tick ticker_now(const struct ticker *t);

/* At which it rings next. */
static inline uint64_t ticker_next(const struct ticker *t)
{
	return max_u64(t->from, t->tick + 1);
}

/*
 * It rings at that tick, or at the next one if that is past, and not again
 * before the next call. Returns 0 or -errno.
 */
must_check int ticker_ring_at(struct ticker *t, uint64_t tick);

/*
 * After whatever was done with that capture: it rings when there is something
 * to do for it. Takes one that is stopped. Returns 0 or -errno.
 */
must_check int ticker_plan(struct ticker *t, const struct capture *capture);

/* When that tick is, in ns of CLOCK_MONOTONIC. */
uint64_t ticker_time(const struct ticker *t, uint64_t tick);

#endif
