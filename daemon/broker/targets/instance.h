/*
 * An instance is a process that the broker knows, profiled or not: a configuration section matches
 * the process, or --pid, a user or --children has added it (enum instance_origin). The broker frees
 * an instance after INSTANCE_REMOVED or INSTANCE_ENDED, as soon as no run, recording or chunk in
 * flight refers to the instance. INSTANCE_GIVEN instances stay until the broker ends. An instance
 * without a run of the profiler (run.h) costs only a descriptor and struct instance: capture does
 * not trace the process, and there is no session in unwind and no place in the table of runs.
 */
#ifndef DAEMON_BROKER_TARGETS_INSTANCE_H
#define DAEMON_BROKER_TARGETS_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/targets/run.h"
#include "daemon/broker/targets/targets.h"
#include "daemon/config/config.h"
#include "daemon/process/owner.h"
#include "daemon/process/peer.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"

/*
 * The maximum number of instances. Each has a descriptor and some kilobytes. A section that
 * matches more processes matches too much.
 */
#define INSTANCES_MAX 4096

/* The size of instance.last_error, with the NUL. */
#define INSTANCE_ERROR_MAX 160

/* Why the process is an instance. */
enum instance_origin {
	INSTANCE_OF_SECTION,
	INSTANCE_GIVEN,	       /* the command line names it: it exists until the broker ends */
	INSTANCE_LEFT_SECTION, /* detached by a user; later no section matches it any more */
	INSTANCE_ATTACHED,     /* an operator or the process's user has attached it */
	INSTANCE_CHILD,	       /* it is a child of a target: --children */
	INSTANCE_RECORDED,     /* it is recorded only, and removed after its last recording */
};

/* What users have requested for the process since it became an instance. */
enum instance_wish {
	INSTANCE_WISH_NONE,
	INSTANCE_WISH_STARTED,	/* start was requested last */
	INSTANCE_WISH_STOPPED,	/* stop was requested last */
	INSTANCE_WISH_ATTACHED, /* attached: profiled whatever its section says */
	INSTANCE_WISH_DETACHED, /* detached: not to be profiled */
};

/*
 * The state of an instance. instance_becomes() only changes it to a later one of this list.
 * instances_check() sets INSTANCE_LIVES again when an instance in INSTANCE_CHANGED has got its new
 * configuration.
 */
enum instance_life {
	INSTANCE_LIVES,
	INSTANCE_CHANGED, /* its run stops, and its next run gets the new configuration */
	INSTANCE_REMOVED, /* nothing wants it any more: no section, user or recording */
	INSTANCE_ENDED,	  /* the process has ended */
};

/* Why a process that is to be profiled has no run of the profiler, or a run for recordings only. */
enum instance_obstacle {
	INSTANCE_NO_OBSTACLE,
	INSTANCE_LIMIT_REACHED, /* max_instances, or the limit of runs, is reached */
	INSTANCE_OVER_BUDGET,	/* its user's part of the CPU budget is used up (governor.h) */
	INSTANCE_RIGHTS_CHANGE, /* its rights change too often (owners.h) */
	INSTANCE_LEFT_OUT, /* cannot be profiled; no run starts until instance_forget_error() */
};

/* Capture reports crashes by signals below this number. */
#define CRASH_SIGNALS 32

/* The crashes of an instance since it was added (crash.h). */
struct instance_crashes {
	uint32_t left;	 /* number of crashes in which capture detached before the handler ran */
	uint32_t traced; /* number of crashes in which capture could not detach */
	/* The crashes that the process has survived since its last exec, by signal. */
	struct survived_crash {
		uint32_t n;
		uint64_t last_ns; /* begin of the last one, CLOCK_MONOTONIC */
	} survived[CRASH_SIGNALS];
	uint32_t ignored; /* signals that no longer count as crashes; bit n - 1: signal n */
};

/* The peer by whose request (control/attach_request.h) the process is profiled or recorded. */
struct instance_asker {
	bool is_set; /* false: no peer has asked */
	bool is_operator;
	uint32_t uid, user;   /* as in struct peer (daemon/process/peer.h) */
	bool is_limit_logged; /* a line was logged: the user has as many processes as permitted */
};

/* A process that the broker knows. */
struct instance {
	struct targets *targets; /* constant */
	/* pid and start_ticks identify the process until the next boot. */
	int32_t pid;
	int32_t parent;	      /* pid of its parent when the broker found the process */
	uint64_t start_ticks; /* start time as in /proc/PID/stat */
	/* process_identity.program_hash of the program that discovery has seen last */
	uint64_t program_hash;
	int pidfd;
	struct owner owner; /* of the process, as last read */
	/* State of owners.h: */
	uint64_t owner_changes; /* how often the owner's key has changed */
	bool owner_has_changed; /* the key has changed, and no run has begun since */
	uint64_t owner_run_ns;	/* when the last run after a change began; 0: none has */
	uint64_t unsampled_ns, unsampled_since_ns; /* state of instance_unsampled_ns() */

	/*
	 * A copy of its section, or, without a section, of config.implicit; a reload does not
	 * change the copy. config.name finds the section in the current configuration.
	 */
	struct section_config config;
	enum instance_origin origin;
	enum instance_wish wish;
	struct instance_asker asker;
	enum instance_life life;
	enum instance_obstacle obstacle;
	bool is_sampled;   /* profile_session_sample_rate chose this process */
	bool was_attached; /* capture has attached to the process at least once */
	/*
	 * For --children, in the unit of start_ticks: each time that capture attaches to this
	 * process, the broker adds the children of the process that were born at this time or later
	 * and are no instances yet (instance_add_missed_children). The first value is
	 * - 0 for a child that capture has reported. The first attachment then sets start_ticks,
	 *   and adds no children if capture traces (targets_trace());
	 * - start_ticks for a child that was born while capture did not trace its parent;
	 * - the clock tick after that in which it became an instance, for every other process.
	 */
	uint64_t followed_since_ticks;
	bool has_leak_check; /* INSTANCE_LEFT_OUT because of its LeakSanitizer (leak_sanitizer.h) */
	/*
	 * INSTANCE_LEFT_OUT because of its program, which has LeakSanitizer or to which capture may
	 * not or cannot attach: process_identity.program_hash. 0: for another reason.
	 */
	uint64_t refused_program;
	bool is_delayed; /* the process had to wait for the CPU budget (governor_admits) */
	/*
	 * A user, or the process itself, has released the process (instance_release): the process
	 * has no run before this time, nor later while another process traces one of its threads.
	 * 0: not released.
	 */
	uint64_t released_until_ns; /* by state.clocks.mono */
	uint64_t release_look_ns;   /* next check for another tracer, after released_until_ns */

	/* State of lifecycle.h: */
	bool is_started;     /* manual mode: start was called, or autostart */
	uint32_t root_spans; /* sampled root spans that are open */
	/* The last root span has ended, and the chunk in which it ended is not finished. */
	bool awaits_last_chunk;
	uint64_t awaits_last_chunk_ns; /* first lifecycle_check() after it was set; 0: none yet */
	/* No warning is due: the process has reported a root span, or the warning was logged. */
	bool no_span_check_done;
	uint64_t no_span_since_ns; /* the first lifecycle_check() without a root span; 0: none */
	/* The id of the next profile, for clients that ask before it begins. */
	char next_profiler_id[MSG_ID_SIZE];
	/*
	 * The profile of the last run, if a change of the owner's key has ended that run and a new
	 * one is wanted: the new run continues this profile (targets_open_run).
	 */
	struct profile_start broken_off;

	uint32_t failures;     /* failures in a row (instance_delay_run) */
	uint64_t failed_ns;    /* time of the last failure, by clock_mono_ns() */
	uint64_t run_delay_ns; /* no run starts before failed_ns + run_delay_ns */
	struct ship *ship;     /* for config.dsn; NULL: no run since config was set */
	struct run *run;       /* the current run, also for recordings only; NULL: none */
	/* Of INSTANCE_GIVEN: a run that has ended, kept for the exit status; NULL: none. */
	struct run *closed_run;
	struct instance_crashes crashes;
	struct run_totals earlier_runs; /* of retired runs (attach_retire()), without chunks */
	struct chunk_source delivery;	/* chunks of all runs */
	size_t n_recordings;		/* current recordings (control/recordings.h) */
	size_t n_operator_recordings;	/* those of operators among them */
	/* Why it is INSTANCE_LEFT_OUT, or what has failed within INSTANCE_FORGIVEN_NS; "": none */
	char last_error[INSTANCE_ERROR_MAX];
	struct loop_source *source; /* watches the pidfd; NULL: not watched */
};

/* Returns true if a section matches the instance; false if the instance has another origin. */
static inline bool instance_has_section(const struct instance *i)
{
	return i->origin == INSTANCE_OF_SECTION;
}

/*
 * Returns true if a user, a recording or its parent (--children) added the instance while the
 * broker ran.
 */
static inline bool instance_was_added(const struct instance *i)
{
	return i->origin >= INSTANCE_ATTACHED;
}

/*
 * Returns true if the environment variables of the process may set the release and the environment
 * (staging, production) of its chunks. A section may match processes of any user, who could choose
 * what Sentry gets under the section's name. So for an instance of a section the function
 * returns true only if trust_environment is set, or if each uid of the process is 0 or the
 * section's uid (if the section has none: the daemon's uid). For all other instances it returns
 * true, since the command line or a user has named the process.
 */
bool instance_trusts_environ(const struct instance *i);

/* Returns true if a user detached the process, or if it cannot be profiled. */
static inline bool instance_is_left_alone(const struct instance *i)
{
	return i->wish == INSTANCE_WISH_DETACHED || i->obstacle == INSTANCE_LEFT_OUT;
}

/*
 * Returns true if only users who are no operators want the process to be profiled. In the CPU
 * budget the processes of sections and operators come before this process (governor.h).
 */
bool instance_is_for_user(const struct instance *i);
/*
 * Returns the uid of the user whose part of the CPU budget the process uses, if
 * instance_is_for_user() is true.
 */
uint32_t instance_budget_user(const struct instance *i);

/*
 * Returns true if the process counts for the limits of a user who is no operator
 * (control/attach_request.h): the user has attached the process; or the user records the process,
 * and neither a section nor an operator wanted its profile when the recording was requested.
 */
bool instance_is_asked_by_user(const struct instance *i);

/*
 * Returns true if a peer of the daemon's socket may see the statistics of the process: the peer
 * sees all processes (an operator, or a member of the group sentry-profd-view), or the process
 * belongs to the peer's user and has no rights that this user lacks (owner_is_user()).
 */
bool instance_is_seen_by(const struct instance *i, const struct peer *peer);

/*
 * If the CPU budget permits no samples of the process now, returns a text for users that says so, a
 * string literal. Otherwise returns NULL.
 */
const char *instance_budget_text(const struct instance *i);

/* Returns true if the process is to have no run now, because it was detached or released. */
static inline bool instance_is_let_go(const struct instance *i)
{
	return i->wish == INSTANCE_WISH_DETACHED || i->released_until_ns != 0;
}

/*
 * Returns true if the process has ended or the instance was removed. instance_of_pid() does not
 * find such an instance.
 */
static inline bool instance_is_gone(const struct instance *i)
{
	return i->life >= INSTANCE_REMOVED;
}

/*
 * Call it after each report of an exec of the process, and after i was left out, since the report
 * of an exec may have come just before. If i was left out because of i->refused_program, and the
 * process now runs another program, i gets a run again, after the delay of instance_delay_run().
 * Does nothing if the process still runs i->refused_program, or has ended.
 */
void instance_has_executed(struct instance *i);

/* Returns a text for users about i->obstacle, valid until *i changes; "": there is no obstacle. */
const char *instance_obstacle_text(const struct instance *i);

/* Clears last_error. An instance that was left out can have runs again. */
void instance_forget_error(struct instance *i);

/* Returns the instance of pid that is not gone; NULL: there is none. */
struct instance *instance_of_pid(struct targets *ts, int32_t pid);

/*
 * Sets i->life, unless the instance is in a later state.
 *
 * INSTANCE_CHANGED: the section, or what the configuration says for processes without one, differs
 * from i->config. instances_check() stops the run, and starts the next one with the new values.
 *
 * INSTANCE_REMOVED: instances_check() stops the run. instances_sweep() frees the instance when it
 * has no run, no recording and no chunk in flight.
 *
 * INSTANCE_ENDED: as INSTANCE_REMOVED, but the run ends by itself, since its process has ended.
 */
void instance_becomes(struct instance *i, enum instance_life life);

/*
 * Releases the process: instances_check() stops its run, and starts none for length_ns from now on.
 * An earlier release that ends later stays in effect.
 */
void instance_release(struct instance *i, uint64_t length_ns);

/*
 * Returns the total time, in ns, for which the process had no run, although one was wanted, because
 * its rights had changed. instance_unsampled_begins() starts the count, unless it runs already, and
 * instance_unsampled_ends() stops it. The total does not grow after the end of all sampling
 * (state.ended_ns).
 */
uint64_t instance_unsampled_ns(const struct instance *i);
void instance_unsampled_begins(struct instance *i);
void instance_unsampled_ends(struct instance *i);

/*
 * Call it when a run of the instance has failed and another may succeed. Sets the delay until the
 * next run: 0 after the first failure, then 1, 2, 4 s and so on (INSTANCE_WAIT_NS), up to
 * INSTANCE_WAIT_MAX_NS. INSTANCE_FORGIVEN_NS without a failure resets the delay.
 */
#define INSTANCE_WAIT_NS     NS_PER_SEC
#define INSTANCE_WAIT_MAX_NS (64 * NS_PER_SEC)
#define INSTANCE_FORGIVEN_NS (600 * NS_PER_SEC)
void instance_delay_run(struct instance *i);
/*
 * Call it at every turn of the broker. After INSTANCE_FORGIVEN_NS without a failure, resets the
 * delay, and clears last_error unless the instance is left out.
 */
void instance_forgive(struct instance *i);

/*
 * Call it when the run of the instance ends because its user's part of the CPU budget is used up.
 * The next run starts INSTANCE_BUDGET_WAIT_NS later at the earliest.
 */
#define INSTANCE_BUDGET_WAIT_NS (60 * NS_PER_SEC)
void instance_wait_for_budget(struct instance *i);

/*
 * Call it when unwind has closed the session of the instance's run without a request of the broker.
 * Calls instance_delay_run(), unless the process has ended. Reason: a target may have taken over
 * its unwind process, and the delay bounds the work that such an unwind process can cause. At
 * failure number INSTANCE_CUTS_LOGGED in a row, logs a line and sets last_error.
 */
#define INSTANCE_CUTS_LOGGED 3
void instance_note_run_cut_short(struct instance *i);

#endif
