/*
 * The governor keeps all processes of sentry-profd together within a share of one processor
 * (--cpu-budget). Once a second it compares what they used with the budget. If they used more,
 * it lowers the sampling rates of the targets that cost most. If there is room again, it raises
 * the rates.
 *
 * A lower rate is made by leaving out ticks, evenly. The samples that remain keep their true
 * times, so that durations in the profile stay right. A lowered rate is a prime number of
 * samples a second, so that it does not coincide with a timer of the target.
 */
#ifndef DAEMON_BROKER_TARGETS_GOVERNOR_H
#define DAEMON_BROKER_TARGETS_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "lib/base/util.h"

/* In samples a second. No rate is lowered below this, but a configured rate may be lower. */
#define GOVERNOR_RATE_MIN_HZ 11

/*
 * Adds the cost of one more second to the average, as a share of one processor. The first second
 * is ignored: it contains the attachment and most of the reading of the program's files. Of the
 * next two seconds the larger cost is ignored. So the average is known after three seconds. From
 * then on it is the mean of up to ten seconds, then an exponential average over ten.
 */
void governor_cost_take(struct governor_cost *c, double cost);

/*
 * Births: processes that are attached for the first time. The cost of an attachment does not
 * depend on a rate. While all processes of sentry-profd together use more than the budget, by an
 * exponential average over ten seconds, one process is attached each GOVERNOR_BIRTH_NS, and the
 * others wait. Most short-lived processes have ended by then. A line says so, at most once a
 * minute.
 */
#define GOVERNOR_BIRTH_NS    NS_PER_SEC
#define GOVERNOR_BIRTHS_TOLD (60 * NS_PER_SEC)
struct governor_births {
	double share;	      /* average use of all processes of sentry-profd, of one processor */
	uint64_t admitted_ns; /* when a process was last attached while over the budget */
	uint64_t told_ns;     /* when a line was last logged; 0: never */
	uint64_t delayed;     /* how many processes had to wait */
};

/*
 * How many of the targets that are profiled have a lowered rate. One log line reports this for
 * all targets, and another line each change, at most once a minute.
 */
#define GOVERNOR_TOLD_NS (60 * NS_PER_SEC)
struct governor_lowered {
	uint32_t lowered, profiled;
	uint32_t least_hz, most_hz; /* lowest and highest of the lowered rates; 0: there are none */
};
struct governor_told {
	struct governor_lowered what;
	uint64_t since_ns; /* time since the last line, as sum of the governor's intervals */
	bool any;	   /* a line was logged */
};

struct governor {
	uint64_t looked_ns;	  /* when the governor last ran; 0: not yet */
	uint64_t own_ns;	  /* processor time of the broker and its helpers at that time */
	struct governor_cost all; /* cost of all processes since a rate was changed */
	struct governor_births births;
	struct governor_told told;
	bool gave_up; /* even the lowest rates exceed the budget, and a line was logged */
};

/* Counts the targets that are profiled and those with a lowered rate. */
void governor_lowered(struct targets *ts, struct governor_lowered *ret);

/* Returns true if i, which a section matches, may be attached for the first time now. */
bool governor_admits(struct targets *ts, struct instance *i, uint64_t now_ns);

/* Returns true if a second has passed since the governor last ran. To be called at every turn. */
bool governor_is_due(const struct targets *ts);
/*
 * Reads what all processes have used, and sets rates. Call it if governor_is_due(). helpers_ns:
 * processor time of the helpers that open files for the broker, since the start.
 */
void governor_check(struct targets *ts, uint64_t helpers_ns);

/* What the processes used of processors in one interval of the governor, in ns. */
struct governor_used {
	double capture, unwind, others;
};

/*
 * The part of governor_check() without the clock and /proc: adds one interval to the averages
 * and sets rates. Tests call it.
 */
void governor_second(struct targets *ts, const struct governor_used *used, uint64_t elapsed_ns);

/* Sends the target's rate to capture, after a change or when the target is added. */
void governor_tell(struct targets *ts, const struct target *t);

/*
 * Computes the rates at which n targets stay within a budget. costs: of each target at its full
 * rate, as a share of one processor; budget: in the same unit. Every target may cost the same,
 * as much as the budget allows; a target that costs less keeps its full rate. Writes to
 * ret_rates, for each target, its full_hz, or a prime from GOVERNOR_RATE_MIN_HZ on (full_hz if
 * that is lower).
 */
void governor_share(const double *costs, const uint32_t *full_hz, size_t n, double budget,
		    uint32_t *ret_rates);

#endif
