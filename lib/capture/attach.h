/*
 * Attaches to the threads of a process that /proc/PID/task lists.
 *
 * The kernel attaches capture to new threads of a traced thread. A scan, which reads that list,
 * finds the other threads, and seizes them (PTRACE_SEIZE, which stops no thread). A scan that
 * reaches its time limit goes on at a later tick (struct traced_scan, state.h). If nothing is
 * traced (capture_options.perf), a scan adds the threads to the table and seizes none.
 */
#ifndef LIB_CAPTURE_ATTACH_H
#define LIB_CAPTURE_ATTACH_H

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Scans: seizes the threads that are not in capture's table of threads, adds them to it, and counts
 * those that cannot be seized (t->scan.n_refused). Its time limit is 5 ms, that of a target's first
 * scan 100 ms. Returns the number of new threads in the table.
 *
 * If t->scan.held_up_ticks is not 0 afterwards, the scan is not complete, and attach_check() goes
 * on with it at the tick t->scan.tick. The process has not ended then. Reasons:
 * - an exec was under way, or the time limit was reached;
 * - the table has no thread of the process, because the leader is dying, or because descriptors or
 *   memory ran out. (In a target's first scan, attach_scan() returns the latter as an error.)
 *
 * If the scan is complete and the table has no thread of the process, the process may have ended.
 * Then returns -EPERM (the kernel refuses), -EBUSY (another tracer), an error of reading /proc,
 * such as -ESRCH or -EMFILE, -ENOMEM, or 0 if /proc lists no thread to attach to.
 */
must_check int attach_scan(struct traced_process *t);

/*
 * Called at each tick of the process; time_ns is the begin of the tick's period. Scans if it is
 * time to (t->scan.tick) and there is a reason: the last scan is not complete, /proc has another
 * number of threads than that scan, or it is time to try refused threads again. So a thread that
 * was made with CLONE_UNTRACED, to which the kernel does not attach capture, is found, too.
 */
void attach_check(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/*
 * Gives up the rest of a scan that has reached its time limit: closes its directory, and the next
 * attach_scan() begins anew. Does nothing if there is no such scan. Call this before t is freed.
 */
void attach_end_pass(struct traced_process *t);

/*
 * Call this in a new tracing thread (detach.h): seizes the threads of t that are in the table
 * again. Removes and frees those that are dead or cannot be seized.
 */
void attach_known_again(struct traced_process *t);

#endif
