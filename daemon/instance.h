/*
 * An instance is a process that a section of the configuration matches, or that
 * --pid names: known from its discovery to its end, whether it is profiled or
 * not. While it is not it costs a descriptor and this struct: no ptrace, no
 * session, no place in the table of targets.
 *
 * What is wanted of an instance is decided by daemon/lifecycle.h, and carried
 * out in one place, instances_check.
 */
#ifndef DAEMON_INSTANCE_H
#define DAEMON_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/figures.h"
#include "daemon/process.h"
#include "daemon/targets.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"

/*
 * Known at a time: each has a descriptor and some kilobytes. A section that
 * matches more than this matches too much.
 */
#define INSTANCES_MAX 4096

#define INSTANCE_ERROR_MAX 160

struct instance {
	struct broker *broker;
	/* Its identity: of all processes since the machine was started. */
	int32_t pid;
	uint64_t start_ticks; /* after the boot, as in /proc/PID/stat */
	int pidfd;
	uint32_t uid; /* effective, when it was found */

	/*
	 * A copy of its section, which a reload does not change. config.name
	 * is how the section of today's configuration is found.
	 */
	struct target_config config;
	bool is_given;	  /* named by --pid: known to the end of the run */
	bool is_attached; /* named by an operator or its user (operate.c) */
	bool is_child; /* is_attached, since its parent forked it: --children */
	/* is_attached for recordings only: it goes with the last of them. */
	bool is_recorded_only;
	bool is_detached; /* by one of these: to be left alone */
	bool is_taken;	  /* attached again, whatever its section says */
	bool is_sampled;  /* the session's decision */

	/* daemon/lifecycle.h */
	bool is_started;     /* manual: to be profiled */
	bool is_told;	     /* by somebody, not by its section */
	uint32_t root_spans; /* trace: sampled ones that are open */
	bool lingers;	     /* the last has ended, its chunk has not, */
	uint64_t lingers_ns; /* which has been looked at since; 0: not yet */
	bool is_traced;	     /* it has told of a root span */
	bool silence_told;
	uint64_t silent_ns; /* looked at since; 0: not yet */
	/* The next run's, for those who ask before it starts. */
	char next_profiler_id[MSG_ID_SIZE];

	uint32_t failures;   /* instance_put_off: how many in a row, */
	uint64_t failed_ns;  /* when the last one was, */
	uint64_t wait_ns;    /* and how long after it no run is started */
	bool was_attached;   /* in this run, or an earlier one */
	bool has_ended;	     /* the process has */
	bool is_left_out;    /* cannot be profiled: not tried again */
	bool is_delayed;     /* by the CPU budget: governor_admits */
	bool is_crowded_out; /* by max_instances, or by too many targets */
	bool is_changed;     /* its section is: to be started anew with that */
	bool is_removed;     /* no section matches it any more */
	struct ship *ship;   /* of config.dsn; NULL: before the first run */
	struct target *target; /* its run; NULL: it is not profiled */
	struct target *kept;   /* of one that is given, closed: for its table */
	struct instance_figures past; /* of its earlier runs, and all chunks */
	uint64_t waiting_bytes;	      /* delivery.c */
	size_t n_envelopes;	      /* that point to this instance */
	size_t n_records;	      /* recordings that go on: record.h */
	char last_error[INSTANCE_ERROR_MAX]; /* "": none */
	struct loop_source *source;	     /* of its pidfd */
};

/*
 * A process that --pid names. Looks at it; on a fault prints one line and
 * returns -errno.
 */
must_check int instance_add_given(struct broker *b, int32_t pid);

/*
 * One that sentry-profctl attach names, and that is none yet: to be profiled,
 * as those of --pid; or is_recorded_only: for its recordings, whose reader is
 * to be counted then. The instance takes the pidfd out of p.
 */
must_check int instance_add_attached(struct broker *b, struct process *p,
				     bool is_recorded_only,
				     struct instance **ret);

/*
 * A process that capture says a target has forked: to be profiled, if capture
 * traces it. Where it has ended, or there is no room, it is not.
 */
void instance_add_child(struct broker *b, int32_t pid);

/*
 * A process that a section of b->config matches; the instance takes the pidfd
 * out of p. Returns 0, or -ENOSPC, -ENOMEM or an error of the loop.
 */
must_check int instance_add(struct broker *b, struct process *p,
			    size_t section);

/* Not of those that somebody has named. */
static inline bool instance_has_section(const struct instance *i)
{
	return !i->is_given && !i->is_attached;
}

/* Takes note of the ends of those that were added before there was a loop. */
must_check int instances_watch(struct broker *b);

/* The instance of a process that has not ended; NULL: there is none. */
struct instance *instance_of_pid(struct broker *b, int32_t pid);

/*
 * Marks the instance as removed: its run is stopped, and instances_sweep frees
 * it once it has no run and no chunk in flight.
 */
void instance_remove(struct instance *i);

/*
 * Marks the instance as changed: its section differs from i->config. The run is
 * stopped, and the next one starts with the new section.
 */
void instance_change(struct instance *i);

/* The sampling rate of the instance's runs: no higher than the timer's. */
uint32_t instance_rate_hz(const struct instance *i);

/*
 * A run of the instance failed, and another may succeed: the next one starts at
 * once after the first failure, then after a wait that doubles each time.
 * Ten minutes without a failure reset it.
 */
#define INSTANCE_WAIT_NS     NS_PER_SEC
#define INSTANCE_WAIT_MAX_NS (64 * NS_PER_SEC)
#define INSTANCE_FORGIVEN_NS (600 * NS_PER_SEC)
void instance_put_off(struct instance *i);

/*
 * unwind closed the session of the instance's run, and the broker had not asked
 * for that: instance_put_off, so that an unwind process which a target took
 * over causes no more work by that than by dying.
 */
#define INSTANCE_CUTS_TOLD 3
void instance_cut_short(struct instance *i);

/* Sentry and files are to have its profile now. */
bool instance_is_wanted(const struct instance *i);

/*
 * Each turn: starts and stops runs as lifecycle_wants says. Frees nothing;
 * appends nothing to the list of instances.
 */
void instances_check(struct broker *b);

/*
 * At the end of a turn, after targets_sweep and delivery_sweep: frees the
 * instances that ended or were removed, and that no target, no envelope and no
 * client refers to any more. The only place that takes an instance out of the
 * list.
 */
void instances_sweep(struct broker *b);

/* One is profiled, or will be. */
bool instances_any_open(const struct broker *b);

#endif
