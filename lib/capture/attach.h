/*
 * Attaches to the threads of a process: attach_scan() to those of a new target, attach_check() at
 * each tick to threads that are still missing, and attach_known_again() to all in a new tracing
 * thread (detach.h).
 *
 * The kernel attaches capture to the new threads that a traced thread makes. A scan finds the other
 * threads: it reads the list in /proc/PID/task, seizes the threads that are not in capture's table
 * (tracees.h) by PTRACE_SEIZE, which stops no thread, and adds them to the table. One reading of
 * the list is a pass. A scan makes further passes until one finds no new thread. A scan that
 * reaches its time limit goes on at a later tick (struct traced_scan, state.h). If nothing is
 * traced (capture_options.perf), a scan adds the threads to the table and seizes none.
 */
#ifndef LIB_CAPTURE_ATTACH_H
#define LIB_CAPTURE_ATTACH_H

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Scans the threads of t, for 5 ms at most, or 100 ms if it is the first scan of a target. A thread
 * that cannot be seized is no error: t->scan.n_refused counts such threads.
 *
 * There are three outcomes:
 * - The scan is not complete: t->scan.held_up_ticks is not 0, and attach_check() goes on with the
 *   scan at a later tick. Returns the number of threads that were added. 0 does not mean here that
 *   the process has ended.
 * - The scan is over (held_up_ticks is 0), and the table has threads of the process. Returns the
 *   number of threads that were added.
 * - The scan is over, and the table has no thread of the process, which may have ended. Returns
 *   -EPERM (the kernel refuses); -EBUSY (another tracer); -ENOMEM; an error of reading /proc, such
 *   as -ESRCH or -EMFILE; or 0 if /proc lists no thread to attach to.
 *
 * Reasons why a scan is not complete:
 * - it has reached its time limit;
 * - PTRACE_SEIZE has reached its own time limit (seize.h), as it does during an exec;
 * - the leader is dying, and the table has no thread of the process;
 * - descriptors or memory ran out, and the table has no thread of the process. Exception: if this
 *   is the first scan of a target, the scan is over, and returns the error.
 */
must_check int attach_scan(struct traced_process *t);

/*
 * Call this at each tick of the process; time_ns is the begin of the tick's period. Does nothing
 * before the tick t->scan.tick. If the last scan reached its time limit, also does nothing before
 * the time t->scan.not_before. Otherwise sets t->scan.tick to 16 ticks after `tick`, and calls
 * attach_scan(), which may set an earlier tick, if
 * - the last scan is not complete, or
 * - /proc now has another number of threads than at that scan, for example because of a thread that
 *   was made with CLONE_UNTRACED, to which the kernel does not attach capture, or
 * - threads were refused at that scan, and the tick t->scan.retry_tick has come.
 */
void attach_check(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/*
 * Ends the pass of a scan that has reached its time limit: closes the open directory of /proc. The
 * next attach_scan() begins a new pass. Does nothing if no pass is under way. Call this before t is
 * freed.
 */
void attach_end_pass(struct traced_process *t);

/*
 * Call this in a new tracing thread (detach.h), which traces no thread yet: seizes the threads of t
 * that the table has. Removes those that are dead or cannot be seized from the table, and frees
 * them. A later attach_scan() finds the threads that were born meanwhile.
 */
void attach_known_again(struct traced_process *t);

#endif
