/*
 * A run of the profiler on a process, from its start to its stop. For a run, capture attaches to
 * the process, and an unwind process has a session, which makes the chunks. A new start makes a new
 * run with a new profiler id; after a change of the process's rights the next run keeps the id
 * (struct profile_start). attach.h starts and stops runs; instances.h decides which.
 *
 * Capture writes the samples of a run as records into a ring, which the unwind process reads; the
 * last record is RECORD_END. In messages to capture and unwind the id of a run is called target.
 */
#ifndef DAEMON_BROKER_TARGETS_RUN_H
#define DAEMON_BROKER_TARGETS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/state/state.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/owner.h"
#include "lib/base/util.h"
#include "lib/capture/counters.h"

struct instance;
struct leak_question;

/* The totals (totals.h) of one run, or of many. All zeros: never profiled. */
struct run_totals {
	struct capture_counters capture;
	uint64_t missed_no_capture; /* samples missed while no capture ran, or lost when it died */
	struct unwind_counts unwind;
	struct chunk_counts chunks;
	uint64_t payload_bytes; /* of chunks that went on to ship */
	/* Crashes (crash.h). left: capture detached before the handler ran; traced: it could not */
	uint64_t crashes_left, crashes_traced;
	uint64_t rights_changes;      /* changes of the owner's key (owners.h) */
	uint64_t rights_unsampled_ns; /* time without a run because of such changes */
	uint32_t lowest_hz;	      /* the lowest rate above 0; 0: never profiled */
	uint64_t lowered_ns;	      /* how long the rate was lowered */
	uint64_t exceeded_ns;	      /* how long even the lowest rates exceeded the budget */
};

enum run_phase {
	RUN_WAITING,  /* capture has not attached yet, or not again after a crash or a debugger */
	RUN_PROFILED, /* capture has attached; also while a dead capture is replaced */
	RUN_STOPPING, /* the broker has asked capture to detach */
	RUN_CLOSING,  /* capture writes no more records; unwind still reads those in the ring */
	RUN_CLOSED,   /* the last chunk is made, or no unwind process is there to make it */
};

/* The state of a run's session in its unwind process. */
enum session {
	SESSION_NONE,
	SESSION_ASKED, /* the broker has asked unwind to open it, and has no answer yet */
	SESSION_OPEN,
};

/*
 * An average cost, as a share of one processor: of one run at its full rate, or of all
 * processes at the present rates (governor.h). All zeros: no second was counted.
 */
struct governor_cost {
	double average; /* 0: not known yet */
	double first;	/* cost of the first second that counts */
	uint32_t n;	/* seconds so far */
};

/* Processor time of a target at a moment. */
struct target_usage {
	uint64_t time_ns; /* the moment, CLOCK_MONOTONIC; 0: not read yet */
	uint64_t cpu_ns;
};

/* The governor's state of a run. */
struct governed {
	struct governor_cost cost;
	/*
	 * The counters cost_ns (capture's processor time for the run) and captured (samples) of
	 * struct capture_counters, as read at the end of the last interval of the governor.
	 */
	uint64_t cost_ns, captured;
	/* How many processors the process uses while the rate is above 0, averaged as cost is. */
	struct governor_cost busy;
	struct target_usage usage; /* at the end of the last interval */
	/*
	 * Used while the rate is 0: the cost at the full rate for each processor that the process
	 * uses. When the rate becomes 0, the governor sets cost.average / busy.average here.
	 * Example: a target that has cost 0.1 while its process used 2 processors has 0.05, so it
	 * would cost 0.2 in a second in which the process uses 4. If busy.average is 0, the value
	 * is 0 (not known) until the process uses a processor again: then it is cost.average / the
	 * processors used in that interval.
	 */
	double cost_of_busy;
	uint64_t withheld_ns; /* how long the rate has been 0 without a break */
	bool is_for_user;     /* last result of instance_is_for_user() while the run was open */
	uint32_t lowest_hz;   /* the lowest rate above 0 */
	uint64_t lowered_ns;  /* how long the rate was lowered */
	uint64_t exceeded_ns; /* how long even the lowest rates exceeded the budget */
};

/* A crash of the process, from TARGET_CRASHED until capture has attached again (crash.h). */
struct run_crash {
	uint32_t tid; /* the thread whose handler runs; 0: there is no crash */
	int32_t signal;
	uint64_t began_ns;  /* CLOCK_MONOTONIC */
	uint64_t wait_ns;   /* the present delay between two checks of the process */
	bool blocks_signal; /* the thread blocks the signal while the handler runs */
	bool is_over;	    /* capture may attach again */
	bool awaits_exec;   /* at the crash capture took no samples yet: it waited for an exec */
};

/*
 * The profile to which the chunks of a run belong: its id, and its times, which are fixed when the
 * profile begins, since the wall clock may be set later. A profile has one run, or several with
 * different rights of the process (owners.h).
 */
struct profile_start {
	char profiler_id[MSG_ID_SIZE]; /* "": there is no profile */
	bool is_for_recordings;	       /* as in struct run */
	uint64_t wall_offset_us;       /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	/* How long the machine had slept since its boot, which CLOCK_MONOTONIC does not count. */
	uint64_t slept_ns;
	uint64_t opened_ns; /* when the profile began, CLOCK_MONOTONIC */
};

/* One run of the profiler on a process. */
struct run {
	uint32_t id;	 /* unique until the broker ends; 0: this place in the table is free */
	bool is_retired; /* has ended: targets_sweep() frees its place */
	bool is_for_recordings; /* serves recordings only: makes no other chunks */
	uint32_t slot;		/* its index in the table and in the heartbeat page */
	struct instance *instance;
	/* Copies from the instance, which owns the pidfd. */
	int32_t pid;
	int pidfd;
	struct owner owner;	/* as last read while its key was that of the unwind process */
	bool owner_has_changed; /* its key has changed: the run ends, and files are refused */
	struct profile_start profile;
	/* process_identity.program_hash when the run began; 0: it could not be read */
	uint64_t program_hash;

	struct unwind *unwind; /* its unwind process; NULL: none yet */
	enum run_phase phase;
	enum session session;
	/* In how many checks of deadlines.c in a row an answer was due: of unwind, of capture. */
	uint32_t overdue_checks, capture_overdue_checks;
	uint64_t closing_ns; /* the first run_begins_to_close(), CLOCK_MONOTONIC; 0: none */
	bool in_capture;   /* MSG_TARGET_ADD was sent; capture has not reported the target's end */
	bool attach_due;   /* MSG_TARGET_ADD is to be sent as soon as possible */
	bool was_attached; /* capture has attached to the process in this run */
	bool left_out;	   /* the run ends: capture hung while reading the process's memory */
	/* Logged: capture could not attach to some of its threads. */
	bool warned_threads_refused;
	bool warned_file_refused; /* logged: a request for a file was refused */
	bool warned_chunk_budget; /* logged: a chunk was above the chunk budget (delivery.h) */
	int attach_error; /* errno: why the run ended before capture attached; 0: no such error */
	/* State of leak_sanitizer.h: */
	struct leak_question *leak_question; /* NULL: none is open */
	uint32_t leak_questions;	     /* number of questions so far */
	uint64_t leak_program; /* process_identity.program_hash of the program asked about */
	bool has_leak_check;   /* the run ends because the process has LeakSanitizer */
	/*
	 * When to check again whether another tracer has detached or a crash is over, by
	 * clock_mono_ns(). 0: the run waits for neither. UINT64_MAX: it waits for capture's answer.
	 */
	uint64_t retry_ns;
	struct run_crash crash;
	/* State of run_suspend_files(): no file of the process is opened before this time. */
	uint64_t files_suspended_until_ns; /* by state_now_ns(); 0: never suspended */
	uint32_t file_suspensions;	   /* how often */

	/* Counters of earlier capture processes; the present one counts in the heartbeat page. */
	struct capture_counters capture_past;
	uint64_t missed_no_capture; /* samples missed while no capture ran, or lost when it died */
	/*
	 * When capture died, or detached in a crash, by CLOCK_MONOTONIC; 0: capture has attached
	 * since. totals_count_missed() sets it to the time up to which missed ticks are counted.
	 */
	uint64_t no_capture_since_ns;
	uint64_t no_capture_threads; /* the process's threads when capture died or detached */

	struct unwind_counts unwind_past; /* of earlier unwind processes */
	struct unwind_counts unwind_now;

	struct target_usage usage; /* as last read (target_usage.h) */
	int statm_fd;		   /* the process's statm (target_usage.c); -1: not open */
	uint32_t full_hz;	   /* the configured sampling rate (instance_rate_hz) */
	uint32_t rate_hz;	   /* the present sampling rate; 0: run_is_withheld() */
	struct governed governed;
};

/* Sets the times of run->profile, which begins now, by the clocks of state. */
void run_set_times(const struct state *state, struct run *run);
/*
 * Returns false if the times of the run's samples no longer agree with the wall clock, and so not
 * with the spans of Sentry's SDK in the process. The caller must then stop the run, since a new
 * profile takes the right times. Returns false in two cases:
 * - the machine has slept for more than a second since the profile began;
 * - the wall clock was set by more than two seconds, and the profile is a minute old. A younger one
 *   goes on, so that a clock that is set all the time ends one profile a minute at most.
 */
bool run_clocks_agree(const struct state *state, const struct run *run);

/*
 * Sets the phase, RUN_STOPPING or RUN_CLOSING. For some seconds after the first call unwind still
 * gets the files that the last chunk needs (inbox.c).
 */
void run_begins_to_close(struct run *run, enum run_phase phase);

/*
 * Sets RUN_CLOSING, and asks unwind to make the last chunk from the records that it has and to
 * close the session. If the run has no unwind process that is ready, sets RUN_CLOSED instead. Does
 * nothing if the run is RUN_CLOSED.
 */
void run_close(struct run *run);
/*
 * Call it when unwind has closed the session of run: sets RUN_CLOSED. If the run is still open,
 * unwind has closed the session by itself, and this function tells capture to detach. capture:
 * children.capture.
 */
void run_closed(struct child *capture, struct run *run);

/*
 * Returns true if no samples of run are taken, because its user's part of the CPU budget is used up
 * (governor.h).
 */
static inline bool run_is_withheld(const struct run *run)
{
	return run->rate_hz == 0 && run->full_hz != 0;
}

/* Returns true if run is RUN_WAITING or RUN_PROFILED. */
bool run_is_open(const struct run *run);
/* Returns true if run is closed and neither capture nor unwind will report anything about it. */
bool run_is_over(const struct run *run);

/*
 * Suspends the reading of the process's files. Call it when a helper process hung while it opened
 * one of them, because of a file system that does not answer or a slow disk. The first suspension
 * takes one minute, each further one twice as long, up to an hour. Returns the length of this
 * suspension in ns. now_ns, here and below: state_now_ns().
 */
uint64_t run_suspend_files(struct run *run, uint64_t now_ns);
/* Calls run_suspend_files(), and logs a line. */
void run_files_hang(struct run *run, uint64_t now_ns);
/* Returns true while the reading of the process's files is suspended. */
bool run_files_suspended(const struct run *run, uint64_t now_ns);

#endif
