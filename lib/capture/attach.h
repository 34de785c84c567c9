/*
 * Attaches to the threads of a process that /proc/PID/task lists.
 *
 * The kernel attaches capture to the new threads that a traced thread makes. A scan reads the list
 * in /proc, and seizes the other threads (PTRACE_SEIZE, which stops no thread). A scan that reaches
 * its time limit goes on at a later tick (struct traced_scan, state.h). If nothing is traced
 * (capture_options.perf), a scan adds the threads to the table and seizes none.
 */
#ifndef LIB_CAPTURE_ATTACH_H
#define LIB_CAPTURE_ATTACH_H

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Scans: seizes the threads that are not in capture's table of threads, and adds them to the table.
 * t->scan.n_refused counts the threads that cannot be seized. A scan takes 5 ms at most, the first
 * scan of a target 100 ms. Returns the number of threads that it has added, or an error (below).
 *
 * If t->scan.held_up_ticks is not 0 afterwards, the scan is not complete, and attach_check() goes
 * on with it at a later tick. No error is returned then, and the process has not ended. Reasons:
 * - the time limit was reached;
 * - PTRACE_SEIZE reached its own time limit (seize.h), as it does during an exec;
 * - the table has no thread of the process, because the leader is dying;
 * - the table has no thread of the process, because descriptors or memory ran out. The first scan
 *   of a target returns this error instead, such as -EMFILE.
 *
 * If held_up_ticks is 0 and the table has no thread of the process, the process may have ended.
 * Then returns -EPERM (the kernel refuses), -EBUSY (another tracer), an error of reading /proc,
 * such as -ESRCH or -EMFILE, -ENOMEM, or 0 if /proc lists no thread to attach to.
 */
must_check int attach_scan(struct traced_process *t);

/*
 * Called at each tick of the process; time_ns is the begin of the tick's period. Does nothing
 * before the tick t->scan.tick. If the last scan reached its time limit, also does nothing before
 * the time t->scan.not_before. Otherwise sets t->scan.tick to 16 ticks later, and calls
 * attach_scan() if
 * - the last scan is not complete, or
 * - /proc now has another number of threads than at that scan, for example because of a thread that
 *   was made with CLONE_UNTRACED, to which the kernel does not attach capture, or
 * - threads were refused at that scan, and the tick t->scan.retry_tick has come.
 */
void attach_check(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/*
 * Gives up the rest of a scan that has reached its time limit: closes the open directory of /proc,
 * and the next attach_scan() begins anew. Does nothing if there is no such scan. Call this before t
 * is freed.
 */
void attach_end_pass(struct traced_process *t);

/*
 * Call this in a new tracing thread (detach.h), which traces no thread yet: seizes the threads of t
 * that the table has. Removes and frees those that are dead or cannot be seized.
 */
void attach_known_again(struct traced_process *t);

#endif
