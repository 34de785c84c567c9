/*
 * The sampler. Attaches to processes with ptrace, looks at each of their threads at each tick,
 * and writes what it saw into rings (lib/capture/sample.h).
 *
 * What a target notices: PTRACE_SEIZE, which stops no thread; at a tick, an interrupt of the
 * threads that run, each of which goes on as soon as its registers and stack are copied. Blocked
 * threads are not stopped. Capture does not unwind. It allocates nothing while a thread is
 * stopped.
 *
 * How it is used:
 *   capture_new; capture_add for each target; capture_tick at each tick; capture_reap when SIGCHLD
 *   arrives (reap.h). Targets are let go of by the functions of leave.h.
 *
 * Capture does not detach by itself, since that takes a stop. (One exception: a leader that is
 * about to die.) When the calling thread ends, the kernel lets go of all tracees without a stop.
 *
 * Limits: one struct capture for each process, since capture reaps every child (waitpid -1). One
 * thread has to make all calls, up to capture_attach_again. SIGALRM and ITIMER_REAL are used within
 * calls and given back; all other threads of the process have to block that signal.
 */
#ifndef LIB_CAPTURE_CAPTURE_H
#define LIB_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/counters.h"
#include "lib/capture/options.h"

struct capture;

/* Copies the options. Returns 0 or -ENOMEM. */
must_check int capture_new(const struct capture_options *options, struct capture **ret);

/* Frees everything, without a record and without letting go of tracees. Takes NULL. */
void capture_free(struct capture *c);

/*
 * Attaches to process pid. pidfd refers to the same process and stays the caller's. target is the
 * number that the target's records carry; not 0. counters is write-only for capture and must
 * outlive the target. tick is the current tick; the first sample is taken at the next one.
 *
 * If the process is in the middle of an exec, capture attaches to it, or to the rest of its
 * threads, at a later tick. Returns 0, -ESRCH (the process has ended), -EPERM, -EACCES (this
 * process may not read the target's files in /proc), -EBUSY (another tracer has it), -ENOEXEC (a
 * 32-bit program), -ENOMEM or -EMFILE.
 */
must_check int capture_add(struct capture *c, uint32_t target, int32_t pid, int pidfd,
			   struct capture_sink *sink, struct capture_counters *counters,
			   uint64_t tick);

/*
 * From here on the target's RECORD_THREADs carry thread pointers, where these are known. The
 * pointer of a thread that is not stopped is found by its list of robust locks, which costs two
 * system calls for each thread. To be called before the target's first tick.
 */
void capture_want_pointers(struct capture *c, uint32_t target);

/*
 * The process is about to execute the program that is to be profiled: until then the target is not
 * looked at, and its ticks are not counted. To be called before the target's first tick.
 */
void capture_await_exec(struct capture *c, uint32_t target);

/* Looks at each thread of each target. Interrupted threads stop soon after: see reap.h. */
void capture_tick(struct capture *c, const struct tick *tick);

/*
 * The number of the next tick at which capture has something to do: ticks before it need not be
 * given. It may be in the past, and can become earlier with every other call. 0: the next tick of
 * all, also if there are no targets.
 */
uint64_t capture_next_tick(const struct capture *c);

/*
 * The time of the first timeout that capture watches: the first tick after this time has to be
 * given, too, whatever capture_next_tick says. UINT64_MAX: there is none.
 */
uint64_t capture_timeout_ns(const struct capture *c);

/*
 * From here on the target is looked at at `ticks` of every `of_ticks` ticks, evenly spread. Only
 * these count as its ticks. They are chosen among the ticks of the target with the highest rate, so
 * that capture wakes at that rate. 0 < ticks <= of_ticks.
 */
void capture_rate(struct capture *c, uint32_t target, uint32_t ticks, uint32_t of_ticks);

/* The number of threads that were interrupted and have not stopped yet. */
size_t capture_pending(const struct capture *c);

/* The number of threads that are known, of all targets. */
size_t capture_threads(const struct capture *c);

/*
 * The highest priority of a target's thread of SCHED_FIFO or SCHED_RR; 0: there is no such thread.
 * The caller of capture_tick has to run above it: else such threads keep the tracer from the
 * processors, while a thread of theirs may be stopped. The priority of a thread is read when the
 * thread is new, after a late tick, and along with its name. SCHED_DEADLINE, which is above all of
 * these, is not counted.
 */
int capture_realtime_priority(const struct capture *c);

/* The sink has a new reader: all threads are announced and sampled anew. */
void capture_reset(struct capture *c, const struct capture_sink *sink);

/*
 * A stack hint of the sink's reader: how much of a thread's stacks the unwinder needs
 * (stack_hints_take, msg_stack_hint). If the last sample of a blocked thread had less, the thread
 * is sampled again. A hint for a thread that writes to another sink is ignored.
 */
void capture_hint(struct capture *c, const struct capture_sink *sink, uint32_t target, uint32_t tid,
		  uint64_t sp, uint64_t top, uint64_t second);

#endif
