/*
 * The state of a capture: the traced processes, the lists of their threads, and the ticks. Private
 * to lib/capture; users of the library include lib/capture/capture.h.
 *
 * struct traced_process and struct capture consist of parts. "schedule.h: ..." above a part says
 * that only schedule.c writes it; a field's comment names any other module that writes the field.
 * Several modules write a part without such a name. The functions here are short and inline, so
 * that the modules need not include each other.
 *
 * A struct traced_process is what users of capture.h call a target. A tick is a numbered sampling
 * period. A look is the check of a thread at a tick, from its files in /proc. A scan reads the list
 * of threads in /proc/PID/task. Times are ns by capture_options.now_ns, ticks are numbers.
 */
#ifndef LIB_CAPTURE_STATE_H
#define LIB_CAPTURE_STATE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/file_identity.h"
#include "lib/base/table.h"
#include "lib/capture/counters.h"
#include "lib/capture/options.h"
#include "lib/capture/thread.h"

/*
 * The ticks of a process after its previous look, up to and including the tick of this look
 * (schedule.h). The ticks before that one had no look: all threads slept, or the tracer was late.
 */
struct tick_span {
	uint64_t last, last_ns; /* the tick of this look: its number, the begin of its period */
	uint64_t previous;	/* number of the tick of the look before */
	uint64_t n;		/* number of ticks in the span, the last one included; at least 1 */
	uint64_t length_ns;	/* mean time from one of these ticks to the next; 0: first span */
	uint64_t left_out;	/* number of ticks that were left out because all threads slept */
	bool slept;		/* all threads slept, and the look came no sooner than planned */
};

/*
 * The ticks of a span that the look at one thread stands for. There are several if ticks before the
 * look were left out. The record of the look carries the first of them.
 */
struct covered_ticks {
	uint64_t n;	   /* number of these ticks, at least 1 */
	uint64_t first;	   /* number of the first of them */
	uint64_t first_ns; /* begin of the period of that first tick */
	/*
	 * Number of ticks that were left out before the first covered one. At these the thread
	 * counts as unchanged since the last look.
	 */
	uint64_t n_unchanged;
};

enum traced_phase {
	TRACED_NEW,	    /* not in capture.targets: in its first scan, or about to be freed */
	TRACED_AWAITS_EXEC, /* no samples until an exec: capture_await_exec, or exec.h (rights) */
	TRACED_SAMPLED,	    /* sampled at its ticks */
	TRACED_DETACHING,   /* capture_remove() was called, and capture still traces the process */
	TRACED_ENDED,	    /* not sampled any more; freed after its RECORD_END: targets.h */
};

/* tick.h: the ticks of one process, and the tick under way. */
struct traced_ticks {
	struct tick_span span; /* up to the last look at the process */
	uint64_t first_ns;     /* time of its first tick; 0: there was none */
	uint64_t deadline_ns;  /* threads whose turn is later than this miss the tick (tick.c) */
	uint64_t n_visited;    /* number of threads whose turn in this tick has come */
	bool is_late;	       /* the deadline of this tick, or of the last one, was exceeded */
	bool awake_first; /* the tick before was late: awake threads come before sleeping ones */
	bool checking;	  /* this tick still has to find out which sleeping threads have run */
};

/* schedule.h: when the process is looked at next. */
struct traced_schedule {
	size_t place; /* index in the capture's list of targets; targets.h */
	/* The process has rate_ticks of every rate_of ticks. Set by capture_rate. */
	uint32_t rate_ticks, rate_of;
	uint64_t next_tick;  /* no look before this tick */
	uint64_t slept_tick; /* next_tick as it was last planned while all threads slept; a thread
				that wakes does not change it */
	uint64_t awake_tick; /* the last tick at which a thread was awake */
};

/* sleepers.h: the threads, and what is known of those that sleep. */
struct traced_threads {
	struct thread *awake, *asleep; /* lists by thread.next */
	uint64_t n, n_asleep;	       /* number of all threads, and of the sleeping ones */
	/* The threads whose turn in the tick under way is next. tick.h sets next_awake, too. */
	struct thread *next_asleep, *next_awake;
	/* tick.h: the next tick begins with this awake thread; NULL: with the first of the list. */
	struct thread *begins_next;
	uint64_t asleep_ns; /* sum of thread.sleep.mark.run_ns of the sleeping threads */
	/*
	 * Run time of the threads that have ended: the process's CPU clock minus the run times of
	 * the threads that live. ended_now_ns is computed at the begin of a tick, and becomes
	 * ended_ns at the end of the tick. ended_known: ended_ns is valid, because the clock was
	 * read at the last tick.
	 */
	uint64_t ended_ns;
	bool ended_known;
	uint64_t ended_now_ns;
	uint64_t n_passed; /* number of sleeping threads that have not run since the tick before */
	bool clock_read;   /* the process's CPU clock was read in this tick */
	/* A timer on the process's CPU clock, which never expires (sleepers.c). */
	timer_t timer;
	bool has_timer;
	bool timer_tried; /* timer_create(2) was called, even if it failed */
	/* A thread has run since attach.h counted the threads: their number may have changed. */
	bool stirred;
};

/* attach.h: a pass over the list of threads in /proc. */
struct scan_pass {
	DIR *dir;  /* NULL: no pass is under way */
	int error; /* -errno: why the last refused thread was refused, or the list not read */
	uint64_t found, refused; /* new threads in the table; those that could not be seized */
	uint64_t left_out;	 /* dead threads, and threads of the kernel's own */
	bool vanished;		 /* a listed thread died or became leader; or no leader is listed */
	bool has_leader;	 /* the list has the leader */
	bool lacks;		 /* descriptors or memory ran out */
	bool dying;		 /* the leader from which capture has detached is still listed */
};

/* attach.h: threads that are not attached to yet. */
struct traced_scan {
	struct scan_pass pass;
	/*
	 * Not 0: the last scan is not complete, and goes on after this number of ticks (the
	 * reasons: attach_scan()). 0: the last scan was complete.
	 */
	uint64_t held_up_ticks;
	uint64_t tick; /* at this tick the threads are counted or scanned; exec.h sets 0: at once */
	uint64_t not_before; /* ns: a scan that has reached its time limit waits until then */
	uint64_t retry_tick; /* refused threads are tried again at this tick */
	uint64_t n_refused, n_left_out; /* at the last scan; see scan_pass */
	int refused_error;		/* -errno of the last refused thread */
};

/* The start of /proc/PID/auxv. If it has changed, the process has executed another program. */
struct exec_auxv {
	uint64_t words[64];
	size_t size; /* bytes; 0: the leader is dead, or an exec has just begun */
};

/* exec.h: the program that the process runs. */
struct traced_exec {
	struct exec_auxv auxv; /* of the program that capture knows of */
	bool auxv_known;
	/* An exec may have happened that no stop has reported. */
	bool doubt;
	uint32_t uid, files_uid; /* parameters of capture_set_user */
	bool user_known;	 /* capture_set_user was called */
	bool leader_dies;	 /* capture has detached from the leader, which dies. */
	bool held;		 /* stopped at its exec: no ticks. Written by held_exec.h */
};

/* record.h: what the reader of the ring knows, and the records that are still to be written. */
struct traced_reader {
	/*
	 * Threads that died since the last tick. Their RECORD_EXIT is written at the next tick,
	 * since their last sample is valid until then.
	 */
	uint32_t *gone;
	size_t n_gone, cap_gone;
	bool needs_reset;	    /* records were lost: the next tick announces all anew */
	uint64_t names_tick;	    /* names are read again at this tick. Set by sleepers.h, too */
	bool wants_thread_pointers; /* capture_want_thread_pointers */
	/* thread_pointer.h: aarch64: from pthread_self(3) to the thread pointer; 0: not known. */
	uint64_t own_data_size;
};

/* detach.h: how long capture has waited for threads before it detaches. */
struct settling {
	uint64_t since_ns; /* when the wait began; 0: no wait */
	/* When the awaited threads last ran, and a sum of their run times and slices then. */
	uint64_t moved_ns, moved_ran;
	bool cut; /* interrupted system calls are not resumed any more (restart/resume.h) */
};

/* waits.h: counts the stops of blocked threads for their registers, to limit them. */
struct traced_stops {
	uint64_t since_ns; /* begin of the second in which stops are counted */
	unsigned int n;	   /* stops in that second */
};

/* crash.h: a thread is about to run its handler of a crash signal. */
struct traced_crash {
	struct capture_crash now; /* tid 0: no thread crashes */
	uint32_t ignored;	  /* signals of capture_ignore_crashes: bit n - 1 for signal n */
};

/* Why a process in TRACED_ENDED is no longer a target. */
enum traced_end {
	TRACED_END_GONE,    /* no thread is left, or capture_remove */
	TRACED_END_FOREIGN, /* the process became a 32-bit program. */
	TRACED_END_CRASH,   /* capture has detached because of a crash. */
};

/* observe.h: a process that is sampled without being traced. */
struct traced_observed {
	uint64_t drops_tick; /* an exec may have happened in this tick: no sample of it is used */
	uint64_t asked_tick; /* the last tick at which capture asked which program runs */
	uint64_t n_unknown;  /* so many ticks in a row capture did not know the program */
	/*
	 * When the rights were compared last (exec_compare_rights). An older sample may be one of a
	 * program with other rights, and is not used.
	 */
	uint64_t compared_ns;
	uint64_t watched_tick; /* the last tick at which a sample caused watched_parts_tick() */
};

struct traced_process {
	struct capture *capture;
	enum traced_phase phase;
	enum traced_end end;
	uint32_t id; /* the caller's number of the target */
	int32_t pid;
	struct capture_sink *sink;
	struct capture_counters *counters;
	int proc_fd;	  /* /proc/PID */
	int task_fd;	  /* /proc/PID/task */
	int pagemap_fd;	  /* of the process's memory; -1: not available, or no thread yet */
	bool exit_stop;	  /* the leader stops before it dies (PTRACE_O_TRACEEXIT): proc/fuse.h */
	bool is_withheld; /* capture_withhold(): its ticks count as missed */

	struct traced_ticks ticks;
	struct traced_schedule schedule;
	struct traced_threads threads;
	struct traced_scan scan;
	struct traced_exec exec;
	struct traced_reader reader;
	struct process_balance balance;
	/*
	 * slow_memory.h: each slow read moves this time into the future. Capture does not read the
	 * memory while the time is more than 20 ms ahead. 0: no read was slow lately.
	 */
	uint64_t slow_until_ns;
	struct watched_parts *watched_parts; /* watched_parts.h; NULL: no list */
	struct settling settling; /* while phase is TRACED_DETACHING; crash.h sets cut, too */
	struct traced_crash crash;
	struct traced_stops stops;
	struct traced_observed observed;
};

/*
 * An entry of the capture's list of targets. A tick reads only this list, because most targets
 * sleep and their structs are not in the CPU's cache.
 */
struct scheduled {
	uint64_t tick; /* of the next look; 0: the very next tick */
	int32_t pid;
	struct traced_process *target;
};

#define REALTIME_MAX 99 /* the highest real-time priority: sched(7) */

/* tracees.h: the threads of all targets, by tid. */
struct thread_table {
	struct table indices; /* tid -> index in by_index */
	struct thread **by_index;
	size_t n_by_index;
	uint32_t *free_indices; /* the indices in by_index that have no thread */
	size_t n_free;
};

/* slow_memory.h: the tracer's own context switches, which are counted for a time. */
struct switch_watch {
	struct clock_switches switches; /* at the last reading */
	uint64_t until_ns;		/* switches are read until this time */
	bool on;			/* the last reading came before until_ns */
};

/*
 * tick.h: limits the first samples of threads that existed before capture attached. First samples
 * are large, so these threads take turns.
 */
struct first_samples {
	unsigned int left; /* first samples that are still allowed in this period (tick.c) */
	uint64_t since_ns; /* begin of the period */
};

/* priority.h: the number of threads of each real-time priority, and the highest one. */
struct realtime_threads {
	uint32_t n[REALTIME_MAX + 1];
	int highest;
};

/* detach.h: waits before the tracing thread can end, which detaches all tracees. */
struct detaching {
	size_t n;		/* targets in TRACED_DETACHING. Counted down by targets.h */
	struct settling all;	/* capture_settle(): the wait for all targets */
	struct settling others; /* the wait for the targets to which capture attaches again */
	/* Begin of the last pause of ticks, in which the resumed calls of other targets can end. */
	uint64_t ticks_off_ns;
	/* The tracing thread ends without a further wait (capture_must_detach_now). */
	bool at_once;
};

/* crash.h: when capture has ended its tracing thread because of crashes of a user's processes. */
#define CRASH_USERS	 64
#define CRASHES_A_MINUTE 10

struct crash_user {
	uint32_t uid;
	uint64_t ns[CRASHES_A_MINUTE]; /* the last times, in a circle; 0: never */
	size_t next;
};

/* crash.h: the last processes from which capture has detached because of a crash. */
#define CRASH_LEFT 64

/* The most threads that are noted in a crash. The first stops of others wait until it is over. */
#define CRASH_NEWBORN 16

struct left_process {
	int32_t pid;   /* 0: none */
	uint64_t ns;   /* time of the detaching */
	bool is_child; /* a followed child, of whose crash the caller does not know yet */
	struct capture_crash crash;
};

/* held_exec.h: a file that a process of this owner executes. */
struct executed_file {
	bool is_set;
	uint32_t uid;
	struct file_identity identity;
};

/* Entries of trusted_files, a cache, enough for a host. A new file replaces one in its place. */
#define TRUSTED_FILES 1024

/* held_exec.h: a process that is held at the stop of its exec. */
struct held_exec {
	int32_t pid;
	uint64_t since_ns;
	struct executed_file file;
};

/* observe.h: what the rings have reported. */
struct observing {
	uint64_t checked_ns; /* when processors were checked last */
	/* The last tick in which the kernel had no room for records, or stopped an event. */
	uint64_t lost_tick, throttled_tick;
	bool births_lost;     /* records of births may be lost */
	uint64_t children_ns; /* when the caller was last asked to look for children */
};

struct capture {
	struct capture_options options;
	struct tick tick;    /* the tick under way, or the last one */
	uint64_t now_ns;     /* when the tracer began to work for this tick */
	uint64_t charged_ns; /* up to this time targets are charged for the tracer's work */

	struct scheduled *targets; /* targets.h */
	size_t n_targets;
	/*
	 * schedule.h: the highest rate of all targets: wake_ticks of every wake_of ticks. The ticks
	 * of all other targets are among those of this rate.
	 */
	uint64_t wake_ticks, wake_of;

	struct thread_table threads;
	struct thread *pending; /* tracees.h: interrupted for a sample, not stopped yet */
	size_t n_pending;
	uint64_t timeout_ns; /* call_timeouts.h: no resumed call times out before this time */
	struct switch_watch switch_watch;
	struct first_samples firsts;
	struct realtime_threads realtime;
	struct detaching detaching;
	struct traced_process *crashing; /* crash.h: capture detaches from it; NULL: none */
	/* reap.c: threads that other targets have made since the crash, before their first stop. */
	uint32_t newborn[CRASH_NEWBORN];
	size_t n_newborn;
	struct crash_user crash_users[CRASH_USERS];
	size_t n_crash_users;
	struct left_process left[CRASH_LEFT];
	size_t next_left; /* index in left of the entry that is written next: the oldest one */
	struct held_exec held_execs[HELD_EXEC_MAX];
	size_t n_held_execs;
	struct executed_file trusted_files[TRUSTED_FILES];
	struct observing observing;
};

/*
 * Returns the target after t in the list, or the first one if t is NULL. Returns NULL at the end.
 */
static inline struct traced_process *state_next(const struct capture *c,
						const struct traced_process *t)
{
	const size_t place = t == NULL ? 0 : t->schedule.place + 1;

	return place < c->n_targets ? c->targets[place].target : NULL;
}

/* No target may be freed in the loop. */
#define FOR_EACH_TARGET(t, c)                                               \
	for (struct traced_process *t = state_next((c), NULL); (t) != NULL; \
	     (t) = state_next((c), (t)))

/* Returns the number of threads of all targets. */
static inline size_t state_threads(const struct capture *c)
{
	return c->threads.n_by_index - c->threads.n_free;
}

/* Returns true if system calls of the process's threads are not resumed any more. */
static inline bool state_is_cut(const struct traced_process *t)
{
	return t->settling.cut || t->capture->detaching.all.cut;
}

/* Renews the heartbeat (capture_options.beat). Call this in work that takes long. */
static inline void state_beat(const struct traced_process *t)
{
	const struct capture_options *options = &t->capture->options;

	options->beat->time_ns = options->now_ns();
}

#endif
