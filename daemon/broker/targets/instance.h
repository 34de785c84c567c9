/*
 * An instance is a process that a configuration section matches, or that --pid or a user names. It
 * exists from its discovery until the process has ended, or until no section matches and no
 * recording needs it any more (enum instance_life), profiled or not. An instance without a run of
 * the profiler (run.h) costs a descriptor and this struct: it is not traced with ptrace, and
 * has no session in unwind and no place in the table of runs.
 */
#ifndef DAEMON_BROKER_TARGETS_INSTANCE_H
#define DAEMON_BROKER_TARGETS_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "daemon/config/config.h"
#include "daemon/process/owner.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"

/*
 * The maximum number of instances. Each has a descriptor and some kilobytes. A section that
 * matches more processes matches too much.
 */
#define INSTANCES_MAX 4096

#define INSTANCE_ERROR_MAX 160

/* Why the process is an instance. */
enum instance_origin {
	INSTANCE_OF_SECTION,
	INSTANCE_GIVEN,	   /* named by --pid or the command: exists until the broker ends */
	INSTANCE_ATTACHED, /* named by an operator or its user (control/attach_request.h) */
	INSTANCE_CHILD,	   /* a child of a target: --children */
	INSTANCE_RECORDED, /* for recordings only: ends with the last of them */
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
 * instance_becomes() only goes forward. instances_check() sets INSTANCE_LIVES again when an
 * instance in INSTANCE_CHANGED has taken its new section.
 */
enum instance_life {
	INSTANCE_LIVES,
	INSTANCE_CHANGED, /* its section has changed: to be restarted with the new one */
	INSTANCE_REMOVED, /* no section matches it any more */
	INSTANCE_ENDED,	  /* the process has ended */
};

/* Why no run of the profiler starts although one is wanted. */
enum instance_obstacle {
	INSTANCE_NO_OBSTACLE,
	INSTANCE_LIMIT_REACHED, /* max_instances, or the limit of runs, is reached */
	INSTANCE_OVER_BUDGET,	/* its user's part of the CPU budget is used up (governor.h) */
	INSTANCE_RIGHTS_CHANGE, /* its rights change too often (owners.h) */
	INSTANCE_LEFT_OUT,	/* cannot be profiled, and is not tried again */
};

/* Capture reports crashes by signals below this number. */
#define CRASH_SIGNALS 32

/* The crashes of an instance (crash.h). */
struct instance_crashes {
	uint32_t left;	 /* capture has detached before the handler ran */
	uint32_t traced; /* capture could not detach */
	/* Since the last exec: by signal, those that the process has survived. */
	struct survived_crash {
		uint32_t n;
		uint64_t last_ns; /* begin of the last one, CLOCK_MONOTONIC */
	} survived[CRASH_SIGNALS];
	uint32_t ignored; /* signals that no longer count; bit n - 1: n */
};

/* The peer by whose request (control/attach_request.h) the process is profiled or recorded. */
struct instance_asker {
	bool is_set; /* false: no peer has asked */
	bool is_operator;
	uint32_t uid, user;   /* user: whose limits count (daemon/process/peer.h) */
	bool is_limit_logged; /* a line says that this user has as many as permitted */
};

/* A process that the broker knows. */
struct instance {
	struct targets *targets; /* constant */
	/* pid and start_ticks identify the process until the next boot. */
	int32_t pid;
	int32_t parent;	      /* when it was found */
	uint64_t start_ticks; /* start time as in /proc/PID/stat */
	int pidfd;
	struct owner owner; /* as last read */
	/* State of owners.h: how often that has changed; since the last run; when that run began.
	 */
	uint64_t owner_changes;
	bool owner_has_changed;
	uint64_t owner_run_ns;
	uint64_t unsampled_ns, unsampled_since_ns; /* instance_unsampled_ns() */

	/*
	 * A copy of its section, which a reload does not change. config.name finds the section
	 * in the current configuration.
	 */
	struct section_config config;
	enum instance_origin origin;
	enum instance_wish wish;
	struct instance_asker asker;
	enum instance_life life;
	enum instance_obstacle obstacle;
	bool is_sampled;   /* profile_session_sample_rate chose this process */
	bool was_attached; /* capture has attached to the process with ptrace at least once */
	/*
	 * With --children, the process's children that were born since then are profiled, in clock
	 * ticks since the boot, as start_ticks: since it became an instance, or, of a child, since
	 * its birth. 0: capture has traced the child since its birth, and with it all that it forks
	 * until a run ends.
	 */
	uint64_t followed_since_ticks;
	bool has_leak_check;   /* INSTANCE_LEFT_OUT because of its LeakSanitizer (leaks.h) */
	uint64_t leak_program; /* process_identity.program_hash of the program that has it */
	bool is_delayed;       /* the process had to wait for the CPU budget (governor_admits) */
	/*
	 * A user, or the process itself, has released the process for a time: it has no run before
	 * this time, nor while another process traces a thread of it. 0: it is not released.
	 */
	uint64_t released_until_ns; /* by state.clocks.mono */
	uint64_t release_look_ns;   /* when to look for another tracer again, after that time */

	/* State of lifecycle.h: */
	bool is_started;     /* manual mode: start was called, or autostart */
	uint32_t root_spans; /* sampled root spans that are open */
	/* The last root span has ended, and the chunk in which it ended is not finished. */
	bool awaits_last_chunk;
	uint64_t awaits_last_chunk_ns; /* when lifecycle_check() first saw that; 0: not yet */
	/* The process has reported a root span, or the warning that it has not was logged. */
	bool no_span_check_done;
	uint64_t no_span_since_ns; /* the first lifecycle_check() without a root span; 0: none */
	/* The id of the next run, for clients that ask before it starts. */
	char next_profiler_id[MSG_ID_SIZE];

	uint32_t failures;     /* failures in a row (instance_delay_run) */
	uint64_t failed_ns;    /* time of the last failure, by clock_mono_ns() */
	uint64_t run_delay_ns; /* how long after failed_ns no run starts */
	struct ship *ship;     /* of config.dsn; NULL: no run yet */
	struct run *run;       /* its run, also one for recordings only; NULL: none */
	/* The closed run of a process of --pid, kept for its table of functions (shutdown.h). */
	struct run *closed_run;
	struct instance_crashes crashes;
	struct run_totals earlier_runs; /* totals of runs that were retired, without chunks */
	struct chunk_source delivery;	/* chunks of all runs */
	size_t n_recordings;		/* current recordings (control/recordings.h) */
	size_t n_operator_recordings;	/* those of operators among them */
	/* Why it is INSTANCE_LEFT_OUT, or what has failed within INSTANCE_FORGIVEN_NS; "": none */
	char last_error[INSTANCE_ERROR_MAX];
	struct loop_source *source; /* of the pidfd; NULL: not watched */
};

/* Returns true if a section matches the instance; false if the command line or a user named it. */
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
 * Returns true if the environment variables of the process may decide about the release and the
 * environment of its chunks: if all its uids are 0 or that of the section. A section may match
 * processes of any user, who would choose what Sentry gets under the name of the section. The
 * command line, or the request of a user who may send profiles, names the very process.
 */
bool instance_trusts_environ(const struct instance *i);

/* Returns true if a user detached the process, or it cannot be profiled. */
static inline bool instance_is_left_alone(const struct instance *i)
{
	return i->wish == INSTANCE_WISH_DETACHED || i->obstacle == INSTANCE_LEFT_OUT;
}

/*
 * Returns true if only users who are no operators want the process to be profiled: sections and
 * operators come before it in the CPU budget (governor.h).
 */
bool instance_is_for_user(const struct instance *i);
/* Returns whose part of the CPU budget such a process uses: a uid. */
uint32_t instance_budget_user(const struct instance *i);

/*
 * Returns true if a user who is no operator has attached the process, or records a process that no
 * section or operator wants: it counts for the user's limits (control/attach_request.h).
 */
bool instance_is_asked_by_user(const struct instance *i);

/*
 * Returns why the CPU budget lets no sample of the process be taken now, as a constant text for
 * users; NULL: it does.
 */
const char *instance_budget_text(const struct instance *i);

/* Returns true if the process is to have no run now, because it was detached or released. */
static inline bool instance_is_let_go(const struct instance *i)
{
	return i->wish == INSTANCE_WISH_DETACHED || i->released_until_ns != 0;
}

/*
 * Returns true if the process has ended or no section matches it any more. No function finds it
 * then.
 */
static inline bool instance_is_gone(const struct instance *i)
{
	return i->life >= INSTANCE_REMOVED;
}

/*
 * The process has executed a program. If it was left out because of the LeakSanitizer of another
 * program, the new one is asked about, with the delays of instance_delay_run(). The event of an
 * exec may come after the answer about its program.
 */
void instance_has_executed(struct instance *i);

/* Describes the obstacle for a user; "": there is none. Valid until the instance changes. */
const char *instance_obstacle_text(const struct instance *i);

/* Clears last_error: an instance that was left out because of it is tried again. */
void instance_forget_error(struct instance *i);

/* Returns the instance of pid that is not gone; NULL: there is none. */
struct instance *instance_of_pid(struct targets *ts, int32_t pid);

/*
 * Sets life, unless the instance is in a later state.
 *
 * INSTANCE_CHANGED: the section differs from i->config. instances_check() then stops the run, and
 * starts the next one with the new section.
 *
 * INSTANCE_REMOVED: instances_check() stops the run. instances_sweep() frees the instance once it
 * has no run and no chunk in flight. INSTANCE_ENDED: the same, but the run ends by itself.
 */
void instance_becomes(struct instance *i, enum instance_life life);

/* Releases the process for this time from now on, or longer if it was released for longer. */
void instance_release(struct instance *i, uint64_t length_ns);

/*
 * Returns how long the process has had no run, although one was wanted, because its rights had
 * changed: since instance_unsampled_begins(), which a second call does not change, until
 * instance_unsampled_ends() or the end of sampling.
 */
uint64_t instance_unsampled_ns(const struct instance *i);
void instance_unsampled_begins(struct instance *i);
void instance_unsampled_ends(struct instance *i);

/*
 * A run of the instance has failed, and another may succeed. The next run starts at once after
 * the first failure, INSTANCE_WAIT_NS after the second, and after each further one twice as
 * long, up to INSTANCE_WAIT_MAX_NS. INSTANCE_FORGIVEN_NS without a failure reset the delay.
 */
#define INSTANCE_WAIT_NS     NS_PER_SEC
#define INSTANCE_WAIT_MAX_NS (64 * NS_PER_SEC)
#define INSTANCE_FORGIVEN_NS (600 * NS_PER_SEC)
void instance_delay_run(struct instance *i);
/* To be called at every turn: resets the delay, and clears last_error if it was of a failure. */
void instance_forgive(struct instance *i);

/*
 * The run of the instance ends because its user's part of the CPU budget is used up. The next one
 * starts INSTANCE_BUDGET_WAIT_NS later at the earliest.
 */
#define INSTANCE_BUDGET_WAIT_NS (60 * NS_PER_SEC)
void instance_wait_for_budget(struct instance *i);

/*
 * unwind has closed the session of the instance's run without a request of the broker:
 * calls instance_delay_run(). A target may have taken over its unwind process; the delay bounds the
 * work that such a process can cause. Logs a line at failure number INSTANCE_CUTS_LOGGED.
 */
#define INSTANCE_CUTS_LOGGED 3
void instance_run_cut_short(struct instance *i);

#endif
