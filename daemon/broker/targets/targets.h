/*
 * The processes that the broker knows, and the runs of the profiler on them.
 *
 * A target is one run of the profiler on a process, from its start to its stop: it has a
 * place in capture, a session in an unwind process, and a profiler_id. A new start is a new
 * target. The process itself is an instance: instance.h. attach.h starts and stops runs;
 * instances.h decides which.
 *
 * This header has the state that the other modules of targets/ share, and the functions
 * that look things up in it.
 */
#ifndef DAEMON_BROKER_TARGETS_TARGETS_H
#define DAEMON_BROKER_TARGETS_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/state/state.h"
#include "daemon/broker/targets/sampling.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/util.h"
#include "lib/capture/counters.h"

struct governor;
struct instance;

/* All 0 is of one that was never profiled. */
struct instance_figures {
	struct capture_counters capture;
	uint64_t missed_no_capture; /* while there was none, or it died */
	struct unwind_counts unwind;
	struct chunk_counts chunks;
	uint64_t payload_bytes; /* of chunks that went on to ship */
	uint32_t lowest_hz;	/* 0: never profiled */
	uint64_t lowered_ns;	/* how long its rate was lowered */
	uint64_t exceeded_ns;	/* and all at their lowest were still too much */
};

enum target_phase {
	TARGET_WAITING,	 /* to be attached */
	TARGET_PROFILED, /* attached */
	TARGET_STOPPING, /* capture is to let go of it */
	TARGET_CLOSING,	 /* no more records will come but those in the ring */
	TARGET_CLOSED,	 /* its last chunk is made */
};

/* A target's session in the unwind process that runs. */
enum session {
	SESSION_NONE,
	SESSION_ASKED, /* it has been told, and has not answered */
	SESSION_OPEN,
};

/*
 * What a target costs at the full rate, or all of them at the rates that they
 * have, of one processor: an average of what it was in each second. All 0 is
 * one that was not looked at yet.
 */
struct governor_cost {
	double average; /* 0: not known yet */
	double first;	/* what the first second that counts was */
	uint32_t n;	/* seconds that were looked at */
};

/* What a target has used so far. */
struct target_usage {
	uint64_t time_ns; /* when; 0: not yet */
	uint64_t cpu_ns;
};

/* What the governor knows of a target. */
struct governed {
	struct governor_cost cost;
	uint64_t cost_ns, captured; /* of its counters at the last look */
	uint32_t lowest_hz;
	uint64_t lowered_ns;  /* how long its rate was lowered */
	uint64_t exceeded_ns; /* and all at their lowest were still too much */
};

struct target {
	uint32_t id;	     /* counts up; 0: this place in the table is free */
	bool is_retired;     /* its place is free after targets_sweep */
	bool is_for_records; /* only: it makes no other chunks */
	uint32_t slot;	     /* its place, here and in the heartbeat page */
	struct instance *instance;
	/* Of the instance. */
	int32_t pid;
	int pidfd;
	uint32_t uid;
	char profiler_id[MSG_ID_SIZE]; /* from the start on */
	/*
	 * The wall clock minus the monotonic one, as of then: fixed, since the
	 * one may be set; and how long the machine had slept, in which the
	 * other stands.
	 */
	uint64_t wall_offset_us;
	uint64_t slept_ns;
	uint64_t opened_ns; /* by the monotonic one */

	struct unwind *unwind; /* NULL: not started, it gets no messages */
	enum target_phase phase;
	enum session session;
	uint32_t owed_looks; /* overdue.c: at which unwind owed an answer */
	bool in_capture;     /* it was told, and has not said that it is over */
	bool attach_due;     /* capture is to be told of it then */
	bool attached_once;
	bool left_out;	   /* it made capture hang */
	bool short_told;   /* that there are too few descriptors for it */
	bool refusal_told; /* the log line about a file that is refused */
	int attach_error;
	uint64_t retry_ns; /* waiting for another tracer's end: look again then;
			      0: it has none */
	/* Its files have made the helper hang, and are left alone until then.
	 */
	uint64_t files_until_ns; /* by state_now_ns; 0: they never have */
	uint32_t file_hangs;	 /* how often they have */

	/* Of capture processes that are gone; the last one's is in its page. */
	struct capture_counters past;
	uint64_t missed_no_capture; /* while there was none, or it died */
	uint64_t dead_ns;	    /* when the last one died; 0: it lives */
	uint64_t dead_threads;

	struct unwind_counts unwind_past; /* of unwind processes that died */
	struct unwind_counts unwind_now;

	struct target_usage usage;
	int statm_fd;	  /* what it is measured by; -1: not opened yet */
	uint32_t full_hz; /* that its configuration asks for */
	uint32_t rate_hz; /* that it is sampled at */
	struct governed governed;
};

/* Callbacks of the broker's root; instance_gone may be NULL. */
struct target_events {
	void *ctx;
	/* The instance is about to be freed. */
	void (*instance_gone)(void *ctx, struct instance *i);
};

/* All instances and targets. Zeros, but for the pointers that wiring.h sets, are none. */
struct targets {
	struct state *state;
	struct children *children;
	struct delivery *delivery;
	struct governor *governor;
	struct target_events events;
	struct sampling_key sampling_key; /* where sections are matched */
	int32_t held_pid;		  /* the command, before it was executed; 0: none */

	struct target table[HEARTBEAT_SLOTS]; /* FOR_EACH_TARGET */
	uint32_t last_target;		      /* the newest one's id */

	struct instance **instances; /* oldest first */
	size_t n_instances, instances_size;
	bool instances_told;	      /* that there are too many */
	struct instance_figures gone; /* of instances that were freed */
};

/*
 * The targets of the table in the order of their places, without those that
 * are retired: the one after t, the first for NULL; NULL after the last.
 */
struct target *target_next(struct targets *ts, const struct target *t);
#define FOR_EACH_TARGET(t, ts) \
	for (struct target *t = target_next((ts), NULL); (t) != NULL; (t) = target_next((ts), (t)))
size_t targets_count(struct targets *ts);

/*
 * Takes a place in the table for a run on i, which has none; it has a
 * profiler_id now, its times are those of the wall clock as it is now, which
 * are read from ts->state->clocks, and nothing else has happened. Returns 0 or -ENOSPC:
 * as many as there can be are profiled.
 */
must_check int target_open(struct targets *ts, struct instance *i, uint32_t rate_hz,
			   bool is_for_records);

/*
 * False: the machine has slept since, its times would be wrong by that. Or the
 * wall clock was set, by more than two seconds, and it is a minute old: what
 * its own process says of its spans is of another time. It is to be stopped,
 * another run has the right ones.
 */
bool target_clocks_hold(const struct targets *ts, const struct target *t);

/* No records come any more: what there is becomes the last chunk. */
void target_close(struct target *t);
/*
 * unwind has closed its session. As a rule capture has written its end, and
 * says so; if not, it is told to let go of it.
 */
void target_closed(struct targets *ts, struct target *t);

/* It waits, or is profiled. */
bool target_is_open(const struct target *t);
/* It is closed, and nobody else will say anything of it. */
bool target_is_over(const struct target *t);

/*
 * At the end of a turn: frees the places of retired targets. The only place
 * where a target's place becomes free.
 */
void targets_sweep(struct targets *ts);

/*
 * Its files have made the helper hang: one of a file system that will not
 * answer, or of a disk that could not just then. They are left alone for a
 * minute, and each time for twice as long, up to an hour. Returns for how long.
 */
uint64_t target_files_hang(struct target *t, uint64_t now_ns);
bool target_files_rest(const struct target *t, uint64_t now_ns);

struct target *target_of(struct targets *ts, uint32_t id);
bool targets_all_closed(struct targets *ts);

#endif
