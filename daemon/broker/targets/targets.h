/*
 * The state that the modules of targets/ share: all instances, which are the processes that the
 * broker knows (instance.h), and all runs of the profiler on them (run.h). Messages call a run a
 * target. The functions find, open and free runs in this state.
 */
#ifndef DAEMON_BROKER_TARGETS_TARGETS_H
#define DAEMON_BROKER_TARGETS_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/state/state.h"
#include "daemon/broker/targets/run.h"
#include "daemon/broker/targets/session_sampling.h"
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

/* Callbacks that wiring.c sets; each may be NULL. */
struct targets_events {
	void *ctx;
	/* The instance is about to be freed. */
	void (*instance_gone)(void *ctx, struct instance *i);
	/* The key of the process's owner has changed (owners.h). */
	void (*owner_changed)(void *ctx, struct instance *i);
};

/* The most processes that capture holds at their exec (lib/capture/options.h). */
#define HELD_EXECS_MAX 256

/* State of held_execs.h: the held processes about which leak_check.h has no answer yet. */
struct held_execs {
	struct held_exec {
		int32_t pid;
		int pidfd;
		struct unwind *unwind;
		struct leak_question *question;
	} list[HELD_EXECS_MAX];
	size_t n;
};

/*
 * All instances and runs. All zeros at first, except for the pointers that wiring.h sets, and
 * leak_check, session_sampling_key, held_pid, held_file and held_options, which main.c sets.
 */
struct targets {
	struct state *state;
	struct children *children;
	struct delivery *delivery;
	struct governor *governor;
	struct held_execs held_execs;
	struct leak_check *leak_check; /* NULL: no process is checked for LeakSanitizer */
	struct targets_events events;
	struct session_sampling_key session_sampling_key; /* set if there are sections */
	/* For `sentry-profd -- COMMAND`; if held_pid is 0, held_file and held_options are unused */
	int32_t held_pid; /* the process that will execute COMMAND; 0: none, or no longer held */
	int held_file;	  /* descriptor of COMMAND's file (discovery/command.h); -1: not known */
	struct leak_options held_options; /* LeakSanitizer's options in COMMAND's environment */

	struct run table[HEARTBEAT_SLOTS]; /* use FOR_EACH_RUN() */
	uint32_t last_run;		   /* id of the newest run */

	struct instance **instances; /* oldest first; instances_size fit in (lib/base/array.h) */
	size_t n_instances, instances_size;
	bool warned_full;	/* logged: HEARTBEAT_SLOTS is reached */
	bool warned_users_full; /* logged: ATTACH_REQUEST_USERS_MAX is reached
				   (control/attach_request.h) */
	bool warned_too_many;	/* logged: INSTANCES_MAX is reached */
	struct run_totals gone; /* totals of instances that were freed */
};

/*
 * Returns the run in the next place after that of run, or the first run if run is NULL; NULL after
 * the last. Skips retired runs (attach_retire).
 */
struct run *targets_next_run(struct targets *ts, const struct run *run);
#define FOR_EACH_RUN(run, ts)                                               \
	for (struct run *run = targets_next_run((ts), NULL); (run) != NULL; \
	     (run) = targets_next_run((ts), (run)))
/* Returns the number of runs in the table, without the retired ones. */
size_t targets_count_runs(struct targets *ts);

/*
 * Takes a place in the table for a new run on i, which has no run, and sets i->run to it. Sets the
 * run's full rate (rate_hz) and its profile: the one that was broken off (struct instance) if its
 * times still agree with the clocks, else a new one. Sends nothing to unwind or capture.
 * is_for_recordings: as in struct run. Returns 0, or -ENOSPC if the table is full.
 */
must_check int targets_open_run(struct targets *ts, struct instance *i, uint32_t rate_hz,
				bool is_for_recordings);

/* Returns true if capture traces the targets (sampler = ptrace). */
bool targets_trace(const struct targets *ts);

/*
 * Call it at the end of a turn: frees the places of retired runs. No other function frees a place.
 */
void targets_sweep(struct targets *ts);

/* Returns the run with this id; NULL: there is none, or it is retired. */
struct run *targets_run(struct targets *ts, uint32_t id);
/* Returns true if every run is in the phase RUN_CLOSED, or there is none. */
bool targets_all_closed(struct targets *ts);

#endif
