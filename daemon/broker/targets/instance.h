/*
 * An instance is a process that a section of the configuration matches, or that
 * --pid or a user names: known from its discovery to its end, whether it is profiled or
 * not. While it is not it costs a descriptor and this struct: no ptrace, no
 * session, no place in the table of targets.
 */
#ifndef DAEMON_BROKER_TARGETS_INSTANCE_H
#define DAEMON_BROKER_TARGETS_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "daemon/config/config.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"

/*
 * Known at a time: each has a descriptor and some kilobytes. A section that
 * matches more than this matches too much.
 */
#define INSTANCES_MAX 4096

#define INSTANCE_ERROR_MAX 160

/* Why the process is an instance. */
enum instance_origin {
	INSTANCE_OF_SECTION,
	INSTANCE_GIVEN,	   /* named by --pid: known to the end of the run */
	INSTANCE_ATTACHED, /* named by an operator or its user (operate.c) */
	INSTANCE_CHILD,	   /* its parent, a target, forked it: --children */
	INSTANCE_RECORDED, /* for recordings only: it goes with the last */
};

/* What users have said since of the instance. */
enum instance_wish {
	INSTANCE_AS_CONFIGURED,
	INSTANCE_COMMANDED, /* started or stopped: is_started says which */
	INSTANCE_TAKEN,	    /* attached again, whatever its section says */
	INSTANCE_DETACHED,  /* to be left alone */
};

/* Each state outlasts those before it: instance_becomes. */
enum instance_life {
	INSTANCE_LIVES,
	INSTANCE_CHANGED, /* its section is: to be started anew with that */
	INSTANCE_REMOVED, /* no section matches it any more */
	INSTANCE_ENDED,	  /* the process has */
};

/* Why no run starts, though one is wanted. */
enum instance_obstacle {
	INSTANCE_UNHINDERED,
	INSTANCE_CROWDED_OUT, /* by max_instances, or by too many targets */
	INSTANCE_LEFT_OUT,    /* cannot be profiled: not tried again */
};

struct instance {
	struct targets *targets; /* all of them; does not change */
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
	enum instance_origin origin;
	enum instance_wish wish;
	enum instance_life life;
	enum instance_obstacle obstacle;
	bool is_sampled;   /* the session's decision */
	bool was_attached; /* in this run, or an earlier one */
	bool is_delayed;   /* by the CPU budget: governor_admits */

	/* daemon/broker/targets/lifecycle.h */
	bool is_started;     /* manual: to be profiled */
	uint32_t root_spans; /* trace: sampled ones that are open */
	bool lingers;	     /* the last has ended, its chunk has not, */
	uint64_t lingers_ns; /* which has been looked at since; 0: not yet */
	/* It has told of a root span, or the log of its silence. */
	bool is_heard;
	uint64_t silent_ns; /* looked at since; 0: not yet */
	/* The next run's, for those who ask before it starts. */
	char next_profiler_id[MSG_ID_SIZE];

	uint32_t failures;		     /* instance_put_off: how many in a row, */
	uint64_t failed_ns;		     /* when the last one was, */
	uint64_t wait_ns;		     /* and how long after it no run is started */
	struct ship *ship;		     /* of config.dsn; NULL: before the first run */
	struct target *target;		     /* its run; NULL: it is not profiled */
	struct target *kept;		     /* of one that is given, closed: for its table */
	struct instance_figures past;	     /* of its earlier runs, without chunks */
	struct chunk_source delivery;	     /* all its chunks */
	size_t n_records;		     /* recordings that go on: record.h */
	char last_error[INSTANCE_ERROR_MAX]; /* "": none */
	struct loop_source *source;	     /* of its pidfd */
};

/* Not of those that somebody has named. */
static inline bool instance_has_section(const struct instance *i)
{
	return i->origin == INSTANCE_OF_SECTION;
}

/* The broker has it because a user, or its parent, wanted that while it ran. */
static inline bool instance_is_attached(const struct instance *i)
{
	return i->origin >= INSTANCE_ATTACHED;
}

/* A user wants that, or it cannot be profiled. */
static inline bool instance_is_left_alone(const struct instance *i)
{
	return i->wish == INSTANCE_DETACHED || i->obstacle == INSTANCE_LEFT_OUT;
}

/* It has ended or was removed: no function finds it any more. */
static inline bool instance_is_gone(const struct instance *i)
{
	return i->life >= INSTANCE_REMOVED;
}

/* The instance of a process that has not ended; NULL: there is none. */
struct instance *instance_of_pid(struct targets *ts, int32_t pid);

/*
 * Has no effect where the instance is past that state.
 *
 * INSTANCE_CHANGED: its section differs from i->config. The run is stopped, and
 * the next one starts with the new section.
 *
 * INSTANCE_REMOVED: its run is stopped, and instances_sweep frees it once it
 * has no run and no chunk in flight. INSTANCE_ENDED: that, too, but the run
 * comes to its end by itself.
 */
void instance_becomes(struct instance *i, enum instance_life life);

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

#endif
