/*
 * The state that all parts of the broker read: options, event loop, phase and clock. The
 * functions here call no other part of the broker. The broker's root (main.c, finish.c, pause.c)
 * changes the phase and the clock; reap.h may end the run, if a child cannot be started.
 *
 * Times are by CLOCK_MONOTONIC, in nanoseconds, unless a comment says otherwise.
 */
#ifndef DAEMON_BROKER_STATE_STATE_H
#define DAEMON_BROKER_STATE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/state/options.h"
#include "lib/base/clock.h"
#include "lib/base/loop.h"

/* The phases of a run. They only advance: state_goes_on_to(). */
enum phase {
	PHASE_PROFILES,
	PHASE_STOPS,   /* the end has begun */
	PHASE_SAMPLED, /* sampling has ended: the last chunks are made and delivered */
	PHASE_CLOSES,  /* the children are to end, and are not restarted */
};

/* The clocks of targets. Tests replace them. */
struct state_clocks {
	clock_fn mono, boot, wall;
};

struct state {
	struct options options;
	struct loop *loop;   /* NULL before it is made */
	bool privileged;     /* the broker runs as root, with some capabilities left */
	uint32_t nice_steps; /* by how much the broker has lowered its nice value */

	enum phase phase;
	bool hurried;	  /* a signal came after PHASE_PROFILES: end without waiting */
	bool failed;	  /* the broker ends because a child cannot be started */
	bool pause_asked; /* SIGTSTP came, and no SIGCONT since */
	bool pausing;	  /* capture is to end, and is not restarted until SIGCONT */

	struct state_clocks clocks;
	uint32_t timer_hz; /* ticks of capture per second; constant */
	uint64_t period_ns;
	uint64_t epoch_ns; /* when the broker started */
	uint64_t away_ns;  /* how long SIGTSTP has stopped the broker so far */
	/* By state_now_ns(): */
	uint64_t started_ns; /* when the first target was attached; 0: none yet */
	uint64_t ended_ns;   /* when sampling ended; 0: not yet */
};

/*
 * Returns true while runs of the profiler are started and stopped: before the end, and not in a
 * pause.
 */
static inline bool state_profiles(const struct state *s)
{
	return s->phase == PHASE_PROFILES && !s->pausing;
}

/* Returns true while samples are taken, those of the last chunks included. */
static inline bool state_samples(const struct state *s)
{
	return s->phase < PHASE_SAMPLED && !s->pausing;
}

/* Advances to a phase. Has no effect if the broker is in it already or in a later one. */
void state_goes_on_to(struct state *s, enum phase phase);

/* Returns CLOCK_MONOTONIC without the time during which SIGTSTP had stopped the broker. */
uint64_t state_now_ns(const struct state *s);

#endif
