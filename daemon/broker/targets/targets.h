/*
 * The targets, which are the processes that the broker knows (instance.h), and the runs of the
 * profiler on them (run.h).
 *
 * This header has the state that the modules of targets/ share, and the functions that find runs in
 * it.
 */
#ifndef DAEMON_BROKER_TARGETS_TARGETS_H
#define DAEMON_BROKER_TARGETS_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/state/state.h"
#include "daemon/broker/targets/run.h"
#include "daemon/broker/targets/sampling.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/leak_options.h"
#include "daemon/process/owner.h"
#include "lib/base/util.h"
#include "lib/capture/counters.h"

struct governor;
struct instance;
struct leak_check;
struct leak_question;

/* Callbacks of the broker's root; each may be NULL. */
struct targets_events {
	void *ctx;
	/* The instance is about to be freed. */
	void (*instance_gone)(void *ctx, struct instance *i);
	/* The process has other rights: owners.h. */
	void (*owner_changed)(void *ctx, struct instance *i);
};

/* Processes that capture holds at their exec (held_execs.h), as many as capture holds at most. */
#define HELD_EXECS_MAX 256

struct held_execs {
	struct held_exec {
		int32_t pid;
		int pidfd;
		struct unwind *unwind;
		struct leak_question *question;
	} list[HELD_EXECS_MAX];
	size_t n;
};

/* All instances and runs. Zero-initialised except for the pointers that wiring.h sets. */
struct targets {
	struct state *state;
	struct children *children;
	struct delivery *delivery;
	struct governor *governor;
	struct held_execs held_execs;
	struct leak_check *leak_check; /* NULL: processes are not asked about LeakSanitizer */
	struct targets_events events;
	struct sampling_key sampling_key; /* set if there are sections */
	int32_t held_pid;		  /* the command until it is executed; 0: none */
	int held_file;			  /* the file of the command, as command.h has it; -1 */
	struct leak_options held_options; /* of its environment */

	struct run table[HEARTBEAT_SLOTS]; /* FOR_EACH_RUN */
	uint32_t last_run;		   /* id of the newest run */

	struct instance **instances; /* oldest first */
	size_t n_instances, instances_size;
	bool warned_full;	/* logged: HEARTBEAT_SLOTS is reached */
	bool warned_users_full; /* logged: ATTACH_REQUEST_USERS_MAX is reached
				   (control/attach_request.h) */
	bool warned_too_many;	/* logged: INSTANCES_MAX is reached */
	struct run_totals gone; /* totals of instances that were freed */
};

/*
 * Iterates over the runs in the order of their places, without the retired ones: returns the
 * one after run, or the first if run is NULL; NULL after the last.
 */
struct run *targets_next_run(struct targets *ts, const struct run *run);
#define FOR_EACH_RUN(run, ts)                                               \
	for (struct run *run = targets_next_run((ts), NULL); (run) != NULL; \
	     (run) = targets_next_run((ts), (run)))
/* Returns the number of runs in the table, without the retired ones. */
size_t targets_count_runs(struct targets *ts);

/*
 * Takes a place in the table for a new run on i, sets i->run, and the run's profiler id, rate
 * and times (ts->state->clocks). i has no run yet. Sends nothing to unwind and capture. Returns 0,
 * or -ENOSPC if the table is full.
 */
must_check int targets_open_run(struct targets *ts, struct instance *i, uint32_t rate_hz,
				bool is_for_recordings);

/* Returns true if capture traces the targets (sampler = ptrace). */
bool targets_trace(const struct targets *ts);

/*
 * To be called at the end of a turn: frees the places of retired runs. No other function
 * frees a place.
 */
void targets_sweep(struct targets *ts);

/* Returns the run with this id; NULL: there is none, or it is retired. */
struct run *targets_run(struct targets *ts, uint32_t id);
/* Returns true if every run is in the phase RUN_CLOSED. */
bool targets_all_closed(struct targets *ts);

#endif
