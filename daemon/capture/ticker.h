/*
 * The clock of the ticks: their numbers and times, and a timer that expires at each tick, or only
 * at ticks at which there is something to do.
 */
#ifndef DAEMON_CAPTURE_TICKER_H
#define DAEMON_CAPTURE_TICKER_H

#include <stdbool.h>

#include "lib/base/clock.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"
#include "lib/capture/capture.h"

/*
 * Tick n comes at a random time in the first 15/16 of period n, so that two ticks are at least 1/16
 * of a period apart. Equally spaced ticks would fall into step with timers of the target, and with
 * what a tick does to the scheduler: a stopped thread may lose its processor to another thread for
 * some milliseconds. The profile would show too much or too little processor time. Periods of more
 * than 100 ms are longer than these effects: there tick n comes at the begin of period n.
 */
#define TICKER_RANDOM_MAX_NS (100 * NS_PER_MS)

/* All 0: stopped. */
struct ticker {
	struct loop_source *source; /* NULL: stopped */
	int fd;
	uint64_t epoch_ns, period_ns;
	uint64_t tick; /* the last tick that was taken */
	uint64_t from; /* the timer expires, or has expired, at this tick */
	bool has_rung; /* the timer has expired and was not read (ticker_pass) */
};

/*
 * Starts the ticker: period n begins at epoch_ns + n * period_ns of CLOCK_MONOTONIC and has tick n;
 * fn is called at each tick. Returns 0 or -errno; if the ticker runs already, 0 if the two times
 * are the same, else -EPROTO.
 */
must_check int ticker_start(struct ticker *t, struct loop *loop, uint64_t epoch_ns,
			    uint64_t period_ns, loop_fn fn);
/* Stops the timer. Does nothing if the ticker is stopped. */
void ticker_stop(struct ticker *t, struct loop *loop);

/* Returns the number of the last tick at or before now_ns. */
uint64_t ticker_at(const struct ticker *t, uint64_t now_ns);

/*
 * Reads the timer and advances t->tick to the current tick. Returns false if there is no new tick.
 * If t->tick is past the tick at which the timer was set to expire, the ticks in between are late.
 */
bool ticker_take(struct ticker *t, uint64_t now_ns);

/*
 * As ticker_take(), but does not read the timer: used while another timer wakes the caller at each
 * tick (await.h). Until the next ticker_take(), ticker_plan() makes no system call, and the loop
 * calls fn in each round.
 */
bool ticker_pass(struct ticker *t, uint64_t now_ns);

/* Returns the last tick that was taken. */
struct tick ticker_now(const struct ticker *t);

/* Returns the tick at which the timer expires next. */
static inline uint64_t ticker_next(const struct ticker *t)
{
	return max_u64(t->from, t->tick + 1);
}

/*
 * Sets the timer to a tick, or to the next tick if that one is past. The timer expires once.
 * Returns 0 or -errno.
 */
must_check int ticker_ring_at(struct ticker *t, uint64_t tick);

/*
 * Sets the timer to the next tick at which capture has work (capture_next_tick), or to the first
 * one after a timeout (capture_timeout_ns). Call it after calls into capture. Does nothing if the
 * ticker is stopped. Returns 0 or -errno.
 */
must_check int ticker_plan(struct ticker *t, const struct capture *capture);

/* Returns the time of a tick, in ns of CLOCK_MONOTONIC. */
uint64_t ticker_time(const struct ticker *t, uint64_t tick);

#endif
