/*
 * A target is one run of the profiler on a process, from its start to its stop:
 * it has a place in capture, a session in an unwind process, and a profiler_id.
 * A new start is a new target. Which processes there are, and which of them are
 * to be profiled, is known in daemon/broker/targets/instance.h.
 */
#ifndef DAEMON_BROKER_TARGETS_TARGETS_H
#define DAEMON_BROKER_TARGETS_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/targets/governor.h"
#include "daemon/broker/targets/measure.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/util.h"
#include "lib/capture/counters.h"

struct broker;
struct instance;
struct unwind;

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
	uint64_t files_until_ns; /* by broker_now_ns; 0: they never have */
	uint32_t file_hangs;	 /* how often they have */

	/* Of capture processes that are gone; the last one's is in its page. */
	struct capture_counters past;
	uint64_t missed_no_capture; /* while there was none, or it died */
	uint64_t dead_ns;	    /* when the last one died; 0: it lives */
	uint64_t dead_threads;

	struct unwind_counts unwind_past; /* of unwind processes that died */
	struct unwind_counts unwind_now;

	struct measured measured;
	int statm_fd;	  /* what it is measured by; -1: not opened yet */
	uint32_t full_hz; /* that its configuration asks for */
	uint32_t rate_hz; /* that it is sampled at */
	struct governed governed;
};

/*
 * The targets of the table in the order of their places, without those that
 * are retired: the one after t, the first for NULL; NULL after the last.
 */
struct target *target_next(struct broker *b, const struct target *t);
#define FOR_EACH_TARGET(t, b) \
	for (struct target *t = target_next((b), NULL); (t) != NULL; (t) = target_next((b), (t)))
size_t targets_count(struct broker *b);

/*
 * Takes a place in the table for a run on i, which has none; it has a
 * profiler_id now, its times are those of the wall clock as it is now, which
 * are read from b->clocks, and nothing else has happened. Returns 0 or -ENOSPC:
 * as many as there can be are profiled.
 */
must_check int target_open(struct broker *b, struct instance *i);

/*
 * False: the machine has slept since, its times would be wrong by that. Or the
 * wall clock was set, by more than two seconds, and it is a minute old: what
 * its own process says of its spans is of another time. It is to be stopped,
 * another run has the right ones.
 */
bool target_clocks_hold(const struct broker *b, const struct target *t);

/*
 * It is to be attached, again after capture was replaced: as soon as unwind
 * knows of it, and nobody else has attached to it meanwhile.
 */
void target_start(struct broker *b, struct target *t);

/* Capture lets go of it, the last chunk is made, and it is closed. */
void target_stop(struct broker *b, struct target *t);

void target_on_state(struct broker *b, const struct msg_target_state *m);

/*
 * At every turn: tells unwind and capture of those that they can be told of
 * now, also where another tracer has let go.
 */
void targets_check(struct broker *b);

/* No records come any more: what there is becomes the last chunk. */
void target_close(struct target *t);
/*
 * unwind has closed its session. As a rule capture has written its end, and
 * says so; if not, it is told to let go of it.
 */
void target_closed(struct broker *b, struct target *t);
/* target_close, of all. */
void targets_close(struct broker *b);

/* It waits, or is profiled. */
bool target_is_open(const struct target *t);
/* It is closed, and nobody else will say anything of it. */
bool target_is_over(const struct target *t);

/*
 * A target that is over leaves its instance: its figures become the instance's,
 * and unwind forgets its session. No function finds the target any more.
 */
void target_retire(struct target *t);

/*
 * At the end of a turn: frees the places of retired targets. The only place
 * where a target's place becomes free.
 */
void targets_sweep(struct broker *b);

/*
 * Its files have made the helper hang: one of a file system that will not
 * answer, or of a disk that could not just then. They are left alone for a
 * minute, and each time for twice as long, up to an hour. Returns for how long.
 */
uint64_t target_files_hang(struct target *t, uint64_t now_ns);
bool target_files_rest(const struct target *t, uint64_t now_ns);

struct target *target_of(struct broker *b, uint32_t id);
bool targets_all_closed(struct broker *b);

/* past.c */
/* capture is gone: keeps its counters; hung_target made it hang (0: none). */
void targets_capture_died(struct broker *b, uint32_t hung_target);
void targets_unwind_died(struct broker *b, struct unwind *u);
/* Ticks at which it was profiled, had there been a capture, are missed. */
void target_count_absence(const struct broker *b, struct target *t, uint64_t now_ns);
/* We have been stopped, or let go, until now: nothing is expected of that. */
void targets_resumed(struct broker *b, uint64_t now_ns);

#endif
