/*
 * Inside lib/capture: a target, its threads, and the bookkeeping of ticks.
 * Others use lib/capture/capture.h.
 */
#ifndef LIB_CAPTURE_TARGET_H
#define LIB_CAPTURE_TARGET_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/capture.h"
#include "lib/capture/proc/proc.h"
#include "lib/capture/sample.h"
#include "lib/capture/thread.h"
#include "lib/capture/ptrace/tracee.h"

/*
 * What a look finds stands for so many ticks, of which this is the first: for
 * more than one if some were left out because nobody had run (tick.c). At the
 * others of those, before it, everybody is told to be as at the last look.
 */
struct stand {
	uint64_t ticks;
	uint64_t tick;
	uint64_t time_ns;
	uint64_t before;
};

/* Between the last look at a target and the one of the tick under way. */
struct delay {
	uint64_t since_tick; /* that of the last look */
	uint64_t tick_ns;    /* between two ticks of the target */
	uint64_t left_out;   /* looks that were not made because all slept */
	bool rested;	     /* and nothing has happened that ended this */
};

/* Over the threads of a process: attach.c */
struct target_pass {
	DIR *dir;  /* NULL: none is under way */
	int error; /* why a thread is refused */
	uint64_t found, refused;
	uint64_t left_out; /* dead, or the kernel's own */
	bool vanished;	   /* one that was there, dead or with another number */
	bool has_leader;
	bool lacks; /* no descriptors or no memory are left for more */
	bool dying; /* the leader that we have let go of is there */
};

/* What is waited for before somebody is let go of: settle.c */
struct settle {
	uint64_t since_ns; /* 0: it is not */
	/* They were last seen to move, and have run so much by then. */
	uint64_t moved_ns, moved_ran;
	bool cut; /* no rest of a call is run any more */
};

/* The beginning of its auxiliary vector: another program's is another. */
struct target_program {
	uint64_t words[64];
	size_t size; /* 0: the leader is dead, or an exec has just begun */
};

enum target_phase {
	TARGET_APART,	    /* in its first scan, or about to be freed */
	TARGET_AWAITS_EXEC, /* capture_await_exec */
	TARGET_SAMPLED,
	TARGET_LEAVES, /* capture_remove */
	TARGET_ENDED,  /* no threads are left; RECORD_END is due */
};

struct target {
	enum target_phase phase;
	size_t place; /* in the capture's targets */
	uint64_t last_tick;
	uint64_t next_tick; /* not to be looked at before, while all sleep */
	uint64_t n_threads, n_asleep;
	/*
	 * The last scan did not come to its end, because of an exec, of the
	 * time it takes, or for want of descriptors or memory: so many ticks
	 * until it goes on. 0: it did.
	 */
	uint64_t held_up_ticks;

	struct capture *capture;
	uint64_t rest_tick; /* what next_tick was, if something ended that */
	struct thread *awake, *asleep;
	/* The threads that the tick under way looks at next. */
	struct thread *next_asleep, *next_awake;
	uint64_t late_ns;   /* from then on no more threads are looked at */
	uint64_t n_visited; /* of them, in that */
	uint64_t due_ticks; /* that one, and those that it makes up for */
	struct delay delay; /* of that one, for those that were seen before */
	struct capture_sink *sink;
	struct capture_counters *counters;
	uint32_t id;
	int32_t pid;
	struct target_program program; /* when it was last seen to begin one */
	bool program_known;
	int proc_fd;	/* /proc/PID */
	int task_fd;	/* /proc/PID/task */
	int pagemap_fd; /* of its memory; -1: not to be had, or no thread yet */
	/* sleepers.c: run times of those asleep, and of those that have ended.
	 */
	uint64_t asleep_ns, ended_ns;
	bool ended_known;
	/* In the tick under way: what will be ended_ns and ended_known, and how
	 * many of those asleep are as they were. */
	uint64_t ended_now_ns, n_passed;
	bool clock_read, asking;
	bool stirred; /* who is there may have changed since the count */
	/*
	 * Threads that have died since the last tick. The reader is told at the
	 * next: a sample holds until then.
	 */
	uint32_t *gone;
	size_t n_gone, cap_gone;
	uint64_t n_refused;  /* there at the last scan, and not attached */
	uint64_t n_left_out; /* and those that are not to be */
	int refused_error;   /* -errno, of the last of these */
	uint64_t last_ns;
	uint64_t first_ns;  /* of its first tick; 0: there was none */
	uint64_t idle_tick; /* the last one at which somebody was awake */
	/* Looked at at rate_ticks of every rate_of ticks. */
	uint32_t rate_ticks, rate_of;
	uint64_t scan_tick;    /* the next one at which threads are counted */
	uint64_t scan_ns;      /* and not before this time */
	uint64_t refused_tick; /* when those refused are tried again */
	struct target_pass pass;
	/*
	 * Processor time that the process used and no sample tells of
	 * (stop.c), as of its clock at the last tick at which that was read
	 * (0: at none).
	 */
	int64_t balance_ns;
	uint64_t balance_clock_ns;
	uint64_t balance_tick;
	uint64_t names_tick;	/* and at which names are read again */
	uint64_t slow_until_ns; /* slow.c: what reads took, as a debt */
	bool doubt;		/* was there an exec that no stop has told of? */
	bool needs_reset;	/* the reader has lost track */
	bool foreign;		/* because it became a 32-bit program */
	struct settle settle;	/* as long as it leaves */
	bool exit_stop;		/* the leader stops before it dies: fuse.h */
	bool leader_dies;	/* it has, and we have let go of it */
	bool wants_pointers;	/* capture_want_pointers */
};

/*
 * A target, and the next tick at which there is something to do for it. Most
 * rest: those beside each other are what a tick goes through, not the targets,
 * each of which is a cache line and a page that nobody has touched since.
 */
struct planned {
	uint64_t tick; /* as of the last target_plan; 0: the next of all */
	struct target *target;
};

#define REALTIME_MAX 99 /* the highest priority: sched(7) */

struct capture {
	struct capture_options options;
	/* Of those that are not leaving: at the end, and before it. */
	struct settle settle, others;
	size_t n_leaving;
	uint64_t tried_ns; /* when these were last kept without ticks */
	struct tick tick;  /* the one under way, or the last */
	uint64_t now_ns;   /* when it came */
	/*
	 * When the tracer last began to work after a wait, and when it last
	 * handled a stop or a tick.
	 */
	uint64_t woke_ns, left_ns;
	uint64_t charged_ns; /* of that, up to when targets are charged for it */
	/* Of the threads that were there before us, tick.c takes so many more
	 * up, since then. */
	unsigned int firsts_left;
	uint64_t firsts_ns;
	uint64_t waits_ns; /* no wait's time is over before */
	/* slow.c: our own, as long as they are watched. */
	struct clock_switches switches;
	uint64_t watch_until_ns;
	bool watching;
	struct planned *targets;
	size_t n_targets;
	/*
	 * The highest rate of a target: wake_ticks of every wake_of ticks. The
	 * ticks of the others are among those of this rate (tick.c).
	 */
	uint64_t wake_ticks, wake_of;
	struct table threads; /* tid -> index in by_index */
	struct thread **by_index;
	size_t n_by_index;
	uint32_t *free_indices;
	size_t n_free;
	struct thread *pending;
	size_t n_pending;
	/* priority.c: threads of each real-time priority, and the highest. */
	uint32_t realtime_threads[REALTIME_MAX + 1];
	int realtime;
};

static inline struct target *target_next(const struct capture *c, const struct target *t)
{
	const size_t place = t == NULL ? 0 : t->place + 1;

	return place < c->n_targets ? c->targets[place].target : NULL;
}

/* None is freed meanwhile. */
#define FOR_EACH_TARGET(t, c) \
	for (struct target *t = target_next((c), NULL); (t) != NULL; (t) = target_next((c), (t)))

/* True if a call of its threads is not gone on with any more. */
static inline bool target_is_cut(const struct target *t)
{
	return t->settle.cut || t->capture->settle.cut;
}

/* capture.c */
/* Its last thread is gone: the reader and the caller are told at its freeing.
 */
void target_end(struct target *t);
/* That, if no thread is known and a scan finds none. */
void target_end_if_gone(struct target *t);
void capture_free_ended(struct capture *c);
/* No sample of it comes any more: what is under way is missed. */
void target_finish(struct target *t);

/* reap.c: capture_reap, in the middle of a tick */
void capture_reap_some(struct capture *c);

/* target.c: threads come and go */
struct thread *capture_thread(struct capture *c, uint32_t tid);
must_check int target_new(struct capture *c, uint32_t id, int32_t pid, int pidfd,
			  struct capture_sink *sink, struct capture_counters *counters,
			  uint64_t tick, struct target **ret);
/* Among those of its capture from now on, until it is freed. */
must_check int target_take_place(struct target *t);
void target_free(struct target *t);
/* The options of ptrace(2): of every tracee, and of a target's thread. */
unsigned long capture_base_options(const struct capture *c);
unsigned long target_options(const struct target *t, uint32_t tid);
/*
 * Calls target_executed if the process has executed a program and no
 * PTRACE_EVENT_EXEC has told of it. Two things prove that: the auxiliary vector
 * is another program's, or the leader is not the one that capture has attached
 * to. Where they cannot be read, doubt is set, and the next tick asks again.
 * Opens files: not while a thread is stopped. Known threads have to be seized.
 */
void target_look_for_exec(struct target *t);
/* The leader was let go of to die, and no other is in its place since exec. */
bool target_leader_dies(struct target *t);
uint64_t target_now(const struct target *t);
/* For what takes long, and gets on: what is told by capture_options.beat. */
void target_beat(const struct target *t);
/* True if the process has a thread of this number. Opens no file. */
bool target_has(const struct target *t, uint32_t tid);
/*
 * A thread the kernel attached by itself, or seized: keeps book of it. -ESRCH
 * if the process has no thread of this number, or the error of a lack of
 * descriptors or memory.
 */
must_check int target_adopt(struct target *t, uint32_t tid);
void thread_remove(struct thread *th, enum missed_reason reason);
void thread_set_pending(struct thread *th, uint64_t tick, uint64_t time_ns);
/* Its stop, if one is to come, has no sample to give any more. */
void thread_clear_pending(struct thread *th);
/* Its sample, if one is under way, is missed. */
void thread_give_up(struct thread *th, enum missed_reason reason);
/* Of what was before we let go, only what it is itself holds on. */
void thread_begin_again(struct thread *th);
/*
 * An exec, which ends all threads but the one that called it: forgets them, and
 * tells the reader and the caller. For an exec that is proven only: a thread
 * that lives may be in the middle of a call that is gone on with.
 */
void target_executed(struct target *t);
/* The same of a program that is not profiled; or the target is let go of. */
void target_forget_threads(struct target *t);

/* attach.c: PTRACE_SEIZE */
/*
 * Seizes the threads of /proc/PID/task that are not known, and counts those
 * that cannot be. Returns how many are new; if none is known in the end, an
 * error: -EPERM, -EBUSY, one of the files, or 0 if there was none to be seized.
 *
 * With held_up_ticks set there are more, and it is to be called again at
 * scan_tick. That is so after the first scan, too, where a lack of descriptors
 * or memory left none: a process has not ended because it cannot be read.
 */
must_check int target_scan(struct target *t);
/*
 * PROC_YES if the leader that is known is not the one that is there. A thread
 * that we trace stays ours until we reap it or let go of it; only an exec puts
 * another one in its place (ptrace(2), "execve(2) under ptrace").
 */
enum proc_answer target_lost_leader(const struct target *t);
/*
 * After we had let go of it: the same for those that are known. The dead ones
 * are removed.
 */
void target_seize_again(struct target *t);
/* What is left of a scan that was put off is not made. */
void target_end_pass(struct target *t);

/* The reader is to be told everything anew, at the next tick. */
void target_reset(struct target *t);

/* sleepers.c */
void thread_link(struct thread *th);
void thread_unlink(struct thread *th);
/* It was found blocked, and has not run after the mark. */
void thread_sleep(struct thread *th, const struct activity_mark *mark);
/* It may have run. */
void thread_wake(struct thread *th);
/* Reads the run and wait times of an awake thread: look, look_known, alone. */
void thread_ask(struct thread *th);
/*
 * Begins a tick: reads the times of all threads that are awake, and finds out
 * whether the sleeping ones have to be asked. If so, target_next_that_ran asks
 * up to *asks of them, and wakes and returns the first that has run;
 * *ret_woke_ns: for how long it has run and waited for a processor since it
 * slept. NULL: none of these has run; there are no more if next_asleep is NULL,
 * too. Then target_looked keeps what the process's clock told.
 */
void target_look(struct target *t);
struct thread *target_next_that_ran(struct target *t, unsigned int *asks, uint64_t *ret_woke_ns);
void target_looked(struct target *t);

/* record.c: what is told to the reader */
bool target_tell(struct target *t, enum record_type type, uint32_t tid, uint64_t tick,
		 uint64_t time_ns);
/* RECORD_EXIT of the threads that have died. */
void target_tell_gone(struct target *t, uint64_t tick, uint64_t time_ns);
bool target_tell_tick(struct target *t, uint64_t tick, uint64_t time_ns);
/*
 * Before its first record. False if there is no room to tell, or nothing to
 * read what is told of it with: *ret_reason. The next look tries again.
 */
must_check bool thread_announce(struct thread *th, uint64_t tick, uint64_t time_ns,
				enum missed_reason *ret_reason);
/*
 * A stop has shown its thread pointer: the reader is told before the sample of
 * that stop, if it wants to know and does not.
 */
void thread_tell_pointer(struct thread *th, uint64_t pointer, uint64_t tick, uint64_t time_ns);
/* Reads the name again if it is due, and tells the reader of a new one. */
void thread_rename(struct thread *th, uint64_t tick, uint64_t time_ns);
/* The same of all threads. */
void target_rename(struct target *t, uint64_t tick, uint64_t time_ns);
/* False if what is written of it would not be understood. */
bool thread_is_known(const struct thread *th);
/* Ticks from this one on are lost: counted, and told once a gap. */
void thread_missed(struct thread *th, enum missed_reason reason, uint64_t ticks, uint64_t tick,
		   uint64_t time_ns);
/*
 * From this tick on the thread waits for a processor; its stack is as it was.
 * Writes a record if the reader believes that it runs.
 */
void thread_tell_waiting(struct thread *th, uint64_t tick, uint64_t time_ns);
/* True if the ring has room for another sample beside the pending ones. */
bool thread_has_room(const struct thread *th);
/*
 * Copies a sample into the ring: *ret is the record, *ret_size what it takes.
 * To be ended by thread_commit or thread_drop. -ENOBUFS if the ring is full,
 * -EBUSY if the target's memory is slow.
 */
must_check int thread_copy(struct thread *th, uint64_t tick, uint64_t time_ns, const uint64_t *regs,
			   uint64_t regs_known, uint32_t flags, struct record_sample **ret,
			   size_t *ret_size);
/* Why a sample is missing for which the ring has no room. */
enum missed_reason target_no_room(const struct target *t);
/* Why one is for which thread_copy, or a call for it, has failed. */
enum missed_reason missed_reason_of(const struct target *t, int error);
void thread_commit(struct thread *th, size_t size);
void thread_drop(struct thread *th);

/* pointer.c */
/* The thread pointer, if the reader wants it and no stop has shown it. */
void thread_find_pointer(struct thread *th);

/* Sets hints.own_end by it, of a thread that was never stopped. */
void thread_find_end(struct thread *th);

/* priority.c: threads of SCHED_FIFO and SCHED_RR */
void thread_look_priority(struct thread *th);
void thread_forget_priority(struct thread *th);

/* slow.c: memory that makes us wait */
/* It has done so for long enough, and is to be left alone. */
bool target_is_slow(const struct target *t);
/* We have slept, and not for a read of memory. */
void capture_note_waits(struct capture *c, uint64_t now_ns);
/* After a read of so many bytes. */
void target_was_read(struct target *t, uint64_t since_ns, size_t size);

/* waits.c: waits whose timeouts would begin anew because of us */
/*
 * Since when the stopped thread has been in the call that it was taken out of,
 * as far as is known: not before it has begun, and not after now_ns.
 */
uint64_t thread_waits_since(const struct thread *th, const struct user_regs_struct *raw,
			    uint64_t now_ns);
/* After a stop: if it has a rest with a time, that will be watched. */
void thread_watch_wait(const struct thread *th);
/* Interrupts those whose time is over. */
void capture_end_waits(struct capture *c, uint64_t now_ns);

/* look.c */
/*
 * A thread that is awake, at the target's last tick: a blocked one is sampled,
 * any other interrupted. ticks: that one, and those that went by since the last
 * look; what the look does not stand for is missed.
 */
void thread_look(struct thread *th, uint64_t ticks, const struct stand *stand);

/* tick.c */
/* After a target has come or gone, or has another rate: plans all anew. */
void capture_find_wakes(struct capture *c);
/* After what may change its next tick has. */
void target_plan(struct target *t);
/* Something has happened in it: its rest is over. */
void target_hasten(struct target *t);
/*
 * Begins a tick. False if it is none of this target's, or all sleep; else
 * target_tick_on is to be called until it returns false. It looks at some
 * threads at a time; in between, stops may be taken. Both are charged for what
 * has passed since charged_ns, and move that.
 */
must_check bool target_tick(struct target *t, uint64_t tick, uint64_t time_ns);
must_check bool target_tick_on(struct target *t);

/* stop.c */
/*
 * A stopped tracee goes on: how is PTRACE_CONT, or another request for one that
 * is not in a group-stop. ESRCH: killed while it was stopped; wait will say so.
 */
void capture_resume(uint32_t tid, enum tracee_status status, int signal, int how);
void thread_stopped(struct thread *th, enum tracee_status status, int signal);

#endif
