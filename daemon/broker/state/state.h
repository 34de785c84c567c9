/*
 * The state that all modules of the broker read: options, event loop, phase, clock and degraded
 * states. The functions here call no other part of the broker. Only main.c and shutdown.c change
 * the phase and suspended_ns. Exception: if a child cannot be started, children/reap.h advances the
 * phase, and so ends the broker.
 *
 * Times are by CLOCK_MONOTONIC, in nanoseconds, unless a comment says otherwise.
 */
#ifndef DAEMON_BROKER_STATE_STATE_H
#define DAEMON_BROKER_STATE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/state/degraded.h"
#include "daemon/broker/state/options.h"
#include "lib/base/clock.h"
#include "lib/base/loop.h"

/* The phases of the life of the broker, in their order. No phase comes again (state_advance). */
enum phase {
	PHASE_PROFILING,  /* runs of the profiler start and stop */
	PHASE_STOPPING,	  /* the end has begun: no run starts any more, but sampling goes on */
	PHASE_DELIVERING, /* sampling has ended: the last chunks are made and delivered */
	PHASE_CLOSING,	  /* the children are to end, and are not restarted */
};

/*
 * The clocks that targets/run.h reads for the times of a run: CLOCK_MONOTONIC, CLOCK_BOOTTIME and
 * CLOCK_REALTIME, in ns. Tests replace them. All other code calls lib/base/clock.h.
 */
struct state_clocks {
	clock_fn mono, boot, wall;
};

struct state {
	struct options options;
	struct loop *loop;   /* NULL before it is made */
	bool privileged;     /* the broker runs as root, with some capabilities left */
	uint32_t nice_steps; /* by how much the broker has lowered its nice value */

	enum phase phase;
	bool end_at_once;  /* do not wait for deliveries: a second signal to end, or start_failed */
	bool start_failed; /* the broker ends because a child cannot be started */
	bool suspend_requested; /* the broker or its command got SIGTSTP, and no SIGCONT since */
	bool is_suspended;	/* by SIGTSTP: capture ends, and is not restarted before SIGCONT */

	struct degraded degraded;
	struct state_clocks clocks;
	uint32_t timer_hz;     /* ticks of capture per second; constant */
	uint64_t period_ns;    /* the length of a sampling period; constant */
	uint64_t epoch_ns;     /* when the broker started; period n begins n * period_ns later */
	uint64_t suspended_ns; /* the sum of all times without sampling because of SIGTSTP */
	/* By state_now_ns(): */
	uint64_t started_ns; /* when the first target was attached; 0: none yet */
	uint64_t ended_ns;   /* when sampling ended; 0: not yet */
};

/* Returns true in PHASE_PROFILING, except while suspended. */
static inline bool state_is_profiling(const struct state *s)
{
	return s->phase == PHASE_PROFILING && !s->is_suspended;
}

/* Returns true before PHASE_DELIVERING, except while suspended: capture takes samples. */
static inline bool state_is_sampling(const struct state *s)
{
	return s->phase < PHASE_DELIVERING && !s->is_suspended;
}

/* Sets the phase, unless the broker is in a later one. */
static inline void state_advance(struct state *s, enum phase phase)
{
	if (s->phase < phase)
		s->phase = phase;
}

/* Returns the time by CLOCK_MONOTONIC minus suspended_ns. */
static inline uint64_t state_now_ns(const struct state *s)
{
	return clock_mono_ns() - s->suspended_ns;
}

#endif
