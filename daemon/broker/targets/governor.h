/*
 * The governor keeps the processes together within a share of one processor
 * (--cpu-budget): when they use more, the targets that cost most are looked at
 * at fewer ticks, and at all of them again when there is room.
 *
 * A rate is lowered by leaving out ticks, evenly: those that remain keep their
 * true times, so durations in the profile stay right. What remains is a prime
 * number a second, so that it is no target's own timer's.
 */
#ifndef DAEMON_BROKER_TARGETS_GOVERNOR_H
#define DAEMON_BROKER_TARGETS_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "lib/base/util.h"

/* No rate is lowered below this; one that was asked for may be lower. */
#define GOVERNOR_RATE_MIN_HZ 11

/*
 * Takes another second, in which it cost so much. The first second does not
 * count: it has the attachment, and most of what stands behind the first stacks
 * of a program, whose files are read once. Nor does the larger one of the next
 * two. So the average is there after three seconds; then each of all seconds
 * counts the same, up to ten.
 */
void governor_cost_take(struct governor_cost *c, double cost);

/*
 * Births: processes that are attached for the first time. What one costs does
 * not go with a rate. So while all processes together use more than the budget,
 * by an exponential average over ten seconds, one process is attached each
 * GOVERNOR_BIRTH_NS, and the others wait; most of those that cost too much have
 * ended by then. A line says so, one a minute at most.
 */
#define GOVERNOR_BIRTH_NS    NS_PER_SEC
#define GOVERNOR_BIRTHS_TOLD (60 * NS_PER_SEC)
struct governor_births {
	double share;	      /* of one processor */
	uint64_t admitted_ns; /* the last one while there was no room */
	uint64_t told_ns;     /* 0: never */
	uint64_t delayed;     /* processes that had to wait */
};

/*
 * Targets whose rate is lowered now, of those that are profiled. One line for
 * all says so, and when it has changed another one, one a minute at most.
 */
#define GOVERNOR_TOLD_NS (60 * NS_PER_SEC)
struct governor_lowered {
	uint32_t lowered, profiled;
	uint32_t least_hz, most_hz; /* of the lowered; 0: there are none */
};
struct governor_told {
	struct governor_lowered what;
	uint64_t since_ns; /* how long ago; counted in seconds of the governor */
	bool any;	   /* there was a line */
};

struct governor {
	uint64_t looked_ns;	  /* at the last second; 0: none yet */
	uint64_t own_ns;	  /* what the broker itself had used then */
	struct governor_cost all; /* since a rate was changed */
	struct governor_births births;
	struct governor_told told;
	bool gave_up; /* the lowest rates are too much, and a line said so */
};

void governor_lowered(struct targets *ts, struct governor_lowered *ret);

/* May i, which a section matches, be attached for the first time now? */
bool governor_admits(struct targets *ts, struct instance *i, uint64_t now_ns);

/* To be asked at every turn: has a second passed since the governor looked? */
bool governor_is_due(const struct targets *ts);
/*
 * When it is due: looks at what all processes have used, and sets rates. helpers_ns:
 * processor time of the helpers that open files for the broker, so far.
 */
void governor_check(struct targets *ts, uint64_t helpers_ns);

/* What the processes used of processors in a second or so, in nanoseconds. */
struct governor_used {
	double capture, unwind, others;
};

/* That look: takes these in, and sets rates. */
void governor_second(struct targets *ts, const struct governor_used *used, uint64_t elapsed_ns);

/* What capture has to be told when it is started anew. */
void governor_tell(struct targets *ts, const struct target *t);

/*
 * The rates at which n targets stay within a budget. costs: of one processor,
 * each at its full rate; budget in the same unit. Every target is allowed the
 * same cost, as large as it can be; who costs less keeps the full rate. Fills
 * in rates: of each its full_hz, or a prime from GOVERNOR_RATE_MIN_HZ on (or
 * full_hz, if that is lower).
 */
void governor_share(const double *costs, const uint32_t *full_hz, size_t n, double budget,
		    uint32_t *ret_rates);

#endif
