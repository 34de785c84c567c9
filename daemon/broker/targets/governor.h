/*
 * The governor keeps all processes of sentry-profd together within a share of one processor
 * (--cpu-budget). Once a second the governor compares the processor time that these processes used
 * with the budget. If they used more than the budget, the governor lowers the sampling rates of the
 * targets (run.h) that cost most. If there is room again, the governor raises the rates.
 * rates.h computes the rates: sections and operators come first, and users share the rest. Below, a
 * user is one who is no operator, and a user's target is one that only users want
 * (instance_is_for_user).
 *
 * The time of an unwind process is charged to its own targets, the time of capture to the targets
 * on which capture spent it, and the time of the other processes to all targets equally.
 *
 * A user's target that does not fit into the user's part has the rate 0: the target stays attached,
 * and capture counts its samples as missed (capture_withhold). Each second the governor checks
 * again whether the target fits; meanwhile the governor estimates the cost from the processor time
 * that the profiled process uses. After GOVERNOR_WITHHELD_NS in a row the run of the target ends,
 * and the next run starts INSTANCE_BUDGET_WAIT_NS later at the earliest (instance.h).
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

/* Capture detaches from a target that has had the rate 0 for this time without a break. */
#define GOVERNOR_WITHHELD_NS (60 * NS_PER_SEC)

/*
 * Adds the cost of one more second, as a share of one processor, to the average. The average
 * ignores the first second, in which capture attaches and unwind reads most of the program's files.
 * Of the next two seconds it ignores the one with the larger cost. So the average is known after
 * three seconds. Then it is the mean of up to ten seconds, and later an exponential average over
 * ten seconds.
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
	double share;	      /* average use, without users' targets, of one processor */
	uint64_t admitted_ns; /* when the governor last admitted a process while over the budget */
	uint64_t logged_ns;   /* when the governor last logged the line; 0: never */
	uint64_t delayed;     /* how many processes had to wait */
};

/*
 * Admission of runs on users' targets. A new run costs processor time before the governor knows its
 * cost: in its first seconds, and for files that unwind reads for the first time. All users
 * together may use what rates_left_for_users() returns. rates_level() shares that: what a user does
 * not use goes to the others. A user whose average use over ten seconds is above the result,
 * `part`, gets no new run. A user with less use gets one new run in an interval of the governor. A
 * user without use has no limit here.
 */
#define GOVERNOR_USERS_MAX 64 /* beyond that, the user with the least use is forgotten */
struct governor_users {
	struct governor_user {
		uint32_t uid;
		double use;	  /* average use of the user's targets, of one processor */
		bool is_admitted; /* a run was admitted since the last interval */
	} list[GOVERNOR_USERS_MAX];
	size_t n;
	double part; /* a user whose use is above this gets no new run */
};

/* How many of the targets that are profiled have a lowered rate. */
struct governor_lowered {
	uint32_t lowered, profiled;
	uint32_t least_hz, most_hz; /* lowest and highest of the lowered rates; 0: there are none */
	uint32_t withheld;	    /* targets with the rate 0; lowered does not count these */
};
/*
 * The last log line about lowered rates. One line reports the numbers of struct governor_lowered
 * for all targets when they have changed, at most once each GOVERNOR_LOWERED_LOG_NS.
 */
#define GOVERNOR_LOWERED_LOG_NS (60 * NS_PER_SEC)
struct governor_logged {
	struct governor_lowered what;
	uint64_t since_ns; /* time since the line, as the sum of the governor's intervals */
	bool any;	   /* false: the governor has logged no line so far */
};

/* All zeros at the start of the broker. */
struct governor {
	uint64_t ran_ns;	  /* when the governor last ran; 0: the governor has not run yet */
	uint64_t own_ns;	  /* processor time of the broker and its helpers at that time */
	struct governor_cost all; /* cost of all processes since a rate was changed */
	struct governor_admission admission;
	struct governor_users users;
	struct governor_logged logged;
	bool is_exceeded; /* even the lowest rates exceed the budget, and a line was logged */
};

/* Sets *ret to the numbers of targets now. */
void governor_count_lowered(struct targets *ts, struct governor_lowered *ret);

/*
 * Returns true if a run may start on i, for which instance_is_for_user() is true. The result true
 * uses up the admission that the user has in one interval of the governor.
 */
bool governor_admits_user(struct targets *ts, const struct instance *i);

/*
 * Returns true if capture may attach to i now. i: a section matches it, and capture has not
 * attached to it before. Over the budget, true uses up the one admission of GOVERNOR_ADMIT_NS, even
 * if the caller then cannot start the run. now_ns: CLOCK_MONOTONIC.
 */
bool governor_admits(struct targets *ts, struct instance *i, uint64_t now_ns);

/* Returns true if a second has passed since the governor last ran. Called at every turn. */
bool governor_is_due(const struct targets *ts);
/*
 * Reads the processor time of all processes of sentry-profd, and sets rates. Call it if
 * governor_is_due(). helpers_ns: processor time, since the start of the broker, of the helpers that
 * open files for the broker.
 */
void governor_check(struct targets *ts, uint64_t helpers_ns);

/*
 * The processor time, in ns, that the processes of sentry-profd used in one interval of the
 * governor. The time of an unwind process is in its child.governed_used_ns.
 */
struct governor_used {
	double capture, others;
};

/*
 * The part of governor_check() without the clock and /proc: adds one interval to the averages
 * and sets rates. Tests call it.
 */
void governor_add_interval(struct targets *ts, const struct governor_used *used,
			   uint64_t elapsed_ns);

/* Sends the target's rate to capture, after a change or when the target is added. */
void governor_send_rate(struct targets *ts, const struct run *run);

#endif
