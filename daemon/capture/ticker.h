/*
 * The clock of the ticks. Time is divided into numbered periods of one length. Tick n is the moment
 * in period n at which capture takes samples. The ticker computes the numbers and times of ticks,
 * and has a timer in the event loop that expires at the next tick at which capture has work.
 *
 * Call ticker_start() first. When the timer expires, the loop calls fn, a function of the caller,
 * which calls ticker_take() and does the work of the tick. A tick is taken when ticker_take() or
 * ticker_pass() has set t->tick to its number. The timer is not periodic, so call ticker_plan()
 * after calls into lib/capture to set the timer again.
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
 * the effect of a tick on the scheduler: a stopped thread may lose its processor to another thread
 * for some milliseconds. The profile would show too much or too little processor time. A period
 * above TICKER_RANDOM_MAX_NS is longer than these effects, so tick n then comes at the begin of
 * period n.
 */
#define TICKER_RANDOM_MAX_NS (100 * NS_PER_MS)

/* All 0: stopped. */
struct ticker {
	struct loop_source *source;   /* NULL: stopped */
	int fd;			      /* the timer, timerfd_create(2) */
	uint64_t epoch_ns, period_ns; /* as given to ticker_start() */
	uint64_t tick;		      /* the last tick that was taken */
	uint64_t timer_tick;	      /* the tick to which the timer was last set */
	bool expired_unread; /* timer_tick has come, and ticker_take() has not read the timer */
};

/*
 * Starts the ticker: period n begins at epoch_ns + n * period_ns of CLOCK_MONOTONIC and has tick n.
 * Sets the timer to the next tick. The loop calls fn with ctx NULL when the timer has expired, in
 * each round until ticker_take() has read the timer. Returns 0, -EPROTO if period_ns is 0, or
 * -errno. If the ticker runs already, changes nothing, and returns 0 if it has the same epoch_ns
 * and period_ns, else -EPROTO.
 */
must_check int ticker_start(struct ticker *t, struct loop *loop, uint64_t epoch_ns,
			    uint64_t period_ns, loop_fn fn);
/* Stops the timer. Does nothing if the ticker is stopped. */
void ticker_stop(struct ticker *t, struct loop *loop);

/* Returns the number of the last tick at or before now_ns; 0 before epoch_ns. */
uint64_t ticker_at(const struct ticker *t, uint64_t now_ns);

/*
 * If the timer has expired, reads it, and advances t->tick to the last tick at or before now_ns.
 * Returns true if t->tick has changed; the caller then does the work of this one tick. The new
 * t->tick can be later than the tick to which the timer was set: the ticks in between are skipped.
 */
bool ticker_take(struct ticker *t, uint64_t now_ns);

/*
 * As ticker_take(), but advances t->tick whether the timer has expired or not, and does not read
 * the timer, which saves a system call. Used while another timer wakes the caller at each tick
 * (await.h). If the ticker's own timer has expired, then until the next ticker_take() the loop
 * calls fn in each round, and ticker_plan() does nothing.
 */
bool ticker_pass(struct ticker *t, uint64_t now_ns);

/* Returns the last tick that was taken, t->tick, with its times. */
struct tick ticker_now(const struct ticker *t);

/*
 * Returns the tick for which the caller waits: the one to which the timer is set, or the one after
 * the last tick taken if the timer has expired.
 */
static inline uint64_t ticker_next(const struct ticker *t)
{
	return max_u64(t->timer_tick, t->tick + 1);
}

/*
 * Sets the timer to this tick, or to t->tick + 1 if that is later. Returns 0 or -errno.
 */
must_check int ticker_set_timer(struct ticker *t, uint64_t tick);

/*
 * Sets the timer to the next tick at which capture has work (capture_next_tick), or to the first
 * tick after capture's next timeout (capture_timeout_ns), whichever is earlier. Call it after calls
 * into lib/capture. Does nothing if the ticker is stopped. Returns 0 or -errno.
 */
must_check int ticker_plan(struct ticker *t, const struct capture *capture);

/* Returns the time of a tick, in ns of CLOCK_MONOTONIC. */
uint64_t ticker_time(const struct ticker *t, uint64_t tick);

#endif
