/*
 * The governor keeps all processes of sentry-profd together within the CPU budget, a share of one
 * processor (--cpu-budget; 0: no limit). Once a second the governor compares the processor time
 * that these processes used with the budget. If they used more than the budget, the governor lowers
 * the sampling rates of the targets (run.h) that cost most. If there is room again, the governor
 * raises the rates.
 *
 * In this header "user" means a user who is not an operator. A user's target is a target that only
 * users want (instance_is_for_user). rates.h computes the rates: the targets of sections and
 * operators come first. All users together get what these targets leave of the budget, but never
 * less than a fifth of the budget.
 *
 * The time of an unwind process is charged to its own targets, the time of capture to the targets
 * on which capture spent it, and the time of the other processes to all targets equally.
 *
 * rates.h gives each user a part of the budget. A user's target that does not fit into the user's
 * part has the rate 0: capture stays attached, takes no samples, and counts as missed those of the
 * lowest rate (rates_least_hz). Each second the governor checks whether the target fits again. A
 * target without samples has no cost to measure, so the governor estimates the cost from the
 * processor time that the profiled process uses. If the rate stays 0 for GOVERNOR_WITHHELD_NS, the
 * run of the target ends, and the next run starts INSTANCE_BUDGET_WAIT_NS later at the earliest
 * (instance.h).
 *
 * Capture lowers a rate by leaving out ticks, evenly. The samples that remain keep their true
 * times, so that durations in the profile stay right. A lowered rate is a prime number of samples a
 * second, so that the samples do not coincide with a timer of the target.
 */
#ifndef DAEMON_BROKER_TARGETS_GOVERNOR_H
#define DAEMON_BROKER_TARGETS_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "lib/base/util.h"

/* A run whose rate stays 0 for this time ends, and capture detaches. */
#define GOVERNOR_WITHHELD_NS (60 * NS_PER_SEC)

/*
 * Adds the cost of one more second, as a share of one processor, to c->average (run.h):
 *
 *     second 1    ignored: capture attaches, and unwind reads most of the program's files
 *     second 2    remembered; the average stays 0 (not known)
 *     second 3    the average is the smaller of the costs of seconds 2 and 3
 *     4 to 12     the average is the mean of that smaller cost and of the costs since second 4
 *     later       an exponential average over ten seconds
 */
void governor_cost_add(struct governor_cost *c, double cost);

/*
 * Admission of processes that sections match and to which capture has not attached before.
 * Attaching costs the same at any sampling rate, so the governor limits how often capture attaches.
 * The governor averages the processor time of sentry-profd, without that for users' targets,
 * exponentially over ten seconds. While this average is above the budget, the governor admits one
 * process each GOVERNOR_ADMIT_NS. The others wait; most short-lived processes end meanwhile. A log
 * line reports this, at most once each GOVERNOR_ADMIT_LOG_NS.
 */
#define GOVERNOR_ADMIT_NS     NS_PER_SEC
#define GOVERNOR_ADMIT_LOG_NS (60 * NS_PER_SEC)
struct governor_admission {
	double share;	      /* that average, as a share of one processor */
	uint64_t admitted_ns; /* when the governor last admitted a process while over the budget */
	uint64_t logged_ns;   /* when the governor last logged the line; 0: never */
	uint64_t delayed;     /* how many processes had to wait */
};

/*
 * Admission of runs on users' targets. A new run costs processor time before the governor knows its
 * cost: in its first seconds, and for files that unwind reads for the first time. So the governor
 * compares `use`, the average cost of a user's targets over ten seconds, with `part`:
 *
 *     use above part       no new run
 *     use up to part       one new run in an interval of the governor (a second)
 *     use 0                any number of new runs
 *
 * `part` is one limit for all users, computed once in an interval, so that all users together stay
 * within rates_left_for_users(). If some users need less than an equal share, the limit rises for
 * the others (rates_level(), which has an example).
 */
#define GOVERNOR_USERS_MAX 64 /* beyond that, the user with the least use is forgotten */
struct governor_users {
	struct governor_user {
		uint32_t uid;
		double use;	  /* average cost of the user's targets: share of a processor */
		bool is_admitted; /* a run was admitted since the last interval */
	} list[GOVERNOR_USERS_MAX];
	size_t n;
	double part; /* share of a processor: a user whose use is above it gets no new run */
};

/* How many of the targets that are profiled have a lowered rate. */
struct governor_lowered {
	uint32_t lowered, profiled;
	uint32_t least_hz, most_hz; /* lowest and highest of the lowered rates; 0: there are none */
	uint32_t withheld;	    /* targets with the rate 0; lowered does not count these */
};
/*
 * The last report of lowered rates in the log: one or two lines with the numbers of struct
 * governor_lowered. If these (except profiled) have changed, the governor logs the next report, at
 * most once each GOVERNOR_LOWERED_LOG_NS.
 */
#define GOVERNOR_LOWERED_LOG_NS (60 * NS_PER_SEC)
struct governor_logged {
	struct governor_lowered what;
	uint64_t since_ns; /* time since the report, as the sum of the governor's intervals */
	bool any;	   /* false: the governor has logged no report so far */
};

/* All zeros at the start of the broker. */
struct governor {
	uint64_t ran_ns;	  /* when the governor last ran; 0: the governor has not run yet */
	uint64_t own_ns;	  /* processor time of the broker and its helpers at that time */
	struct governor_cost all; /* of all processes; reset when a rate changes */
	struct governor_admission admission;
	struct governor_users users;
	struct governor_logged logged;
	bool is_exceeded; /* even the lowest rates exceed the budget, and a line was logged */
};

/* Sets *ret for the targets that are profiled now (RUN_PROFILED). */
void governor_count_lowered(struct targets *ts, struct governor_lowered *ret);

/*
 * Returns true if a run may start on i, for which instance_is_for_user() is true. If the user's
 * `use` is above 0, returning true uses up the user's one new run of this interval.
 */
bool governor_admits_user(struct targets *ts, const struct instance *i);

/*
 * Returns true if capture may attach to i now. i: an instance that a section matches and to whose
 * process capture has not attached before. While governor_admission.share is above the budget,
 * returning true uses up the one admission of GOVERNOR_ADMIT_NS, even if the caller then cannot
 * start the run. now_ns: CLOCK_MONOTONIC.
 */
bool governor_admits(struct targets *ts, struct instance *i, uint64_t now_ns);

/* Returns true if the governor has not run yet, or last ran a second ago or longer. */
bool governor_is_due(const struct targets *ts);
/*
 * Runs the governor: reads the processor time of all processes of sentry-profd, and sets rates. The
 * first call only begins the first interval. Call it if governor_is_due(). helpers_ns: processor
 * time, since the start of the broker, of the helpers that open files for the broker.
 */
void governor_check(struct targets *ts, uint64_t helpers_ns);

/*
 * The processor time, in ns, that processes of sentry-profd used in one interval of the governor.
 * others: the sum of all ships, the broker and its helpers. The times of the unwind processes are
 * not in this struct, but in child.governed_used_ns of each.
 */
struct governor_used {
	double capture, others;
};

/*
 * The part of governor_check() without the clock and /proc: adds one interval to the averages
 * and sets rates. elapsed_ns: the length of the interval. Tests call it.
 */
void governor_add_interval(struct targets *ts, const struct governor_used *used,
			   uint64_t elapsed_ns);

/* Sends the rate of run to capture. Call it after a change, and when the target is added. */
void governor_send_rate(struct targets *ts, const struct run *run);

#endif
