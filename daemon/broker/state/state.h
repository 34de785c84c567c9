/*
 * What all parts of the broker read: its options, its event loop, its phase and its
 * clock. Plain data; the functions here call no other part of the broker. The broker's
 * root (main.c, finish.c, pause.c) changes the phase and the clock, and ends of children
 * (children/reap.h) may end the run.
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

/* How far the broker is. The phase never goes back: state_goes_on_to. */
enum phase {
	PHASE_PROFILES,
	PHASE_STOPS,   /* the last chunks are being made */
	PHASE_SAMPLED, /* sampling has stopped: chunks are delivered */
	PHASE_CLOSES,  /* the children are to end, and are not replaced */
};

/* The clocks by which targets get their times; a test sets them. */
struct state_clocks {
	clock_fn mono, boot, wall;
};

struct state {
	struct options options;
	struct loop *loop;   /* NULL before it is made */
	bool privileged;     /* the broker runs as root, with some capabilities left */
	uint32_t nice_steps; /* by how much the broker's priority was raised at its start */

	enum phase phase;
	bool hurried;	  /* a signal came after PHASE_PROFILES: do not wait */
	bool failed;	  /* a child cannot be started, so the broker ends */
	bool pause_asked; /* by SIGTSTP, and no SIGCONT came since */
	bool pausing;	  /* capture is to end, and is not replaced until SIGCONT */

	struct state_clocks clocks;
	uint32_t timer_hz; /* ticks of capture a second; does not change */
	uint64_t period_ns;
	uint64_t epoch_ns; /* when the broker started */
	uint64_t away_ns;  /* how long SIGTSTP has stopped the broker so far */
	/* By state_now_ns: */
	uint64_t started_ns; /* the first target was attached; 0: none yet */
	uint64_t ended_ns;   /* sampling has stopped; 0: not yet */
};

/* True while runs of the profiler are started and ended: before the end, and not in a pause. */
static inline bool state_profiles(const struct state *s)
{
	return s->phase == PHASE_PROFILES && !s->pausing;
}

/* True while samples are taken, also those of the last chunks. */
static inline bool state_samples(const struct state *s)
{
	return s->phase < PHASE_SAMPLED && !s->pausing;
}

/* Has no effect if the broker is in this phase already, or in a later one. */
void state_goes_on_to(struct state *s, enum phase phase);

/* CLOCK_MONOTONIC without the time during which SIGTSTP stopped the broker. */
uint64_t state_now_ns(const struct state *s);

#endif
