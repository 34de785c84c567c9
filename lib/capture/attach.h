/*
 * Attaches to the threads of a process that /proc/PID/task lists.
 *
 * PTRACE_SEIZE stops no thread. New threads of a traced thread are attached by the kernel; a scan
 * finds the others. A scan has a time limit, and goes on at a later tick (struct
 * traced_scan, state.h).
 */
#ifndef LIB_CAPTURE_ATTACH_H
#define LIB_CAPTURE_ATTACH_H

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Seizes the threads that are not in the table, and counts those that cannot be seized. Returns the
 * number of new threads.
 *
 * If the table has no thread of the process at the end, the process may have ended. Then returns
 * -EPERM, -EBUSY (another tracer), an error of reading /proc, or 0 if /proc lists no thread to
 * attach to.
 *
 * If t->scan.held_up_ticks is not 0 at the end, the scan is not complete, so the process has not
 * ended: the caller calls attach_scan again at the tick t->scan.tick. This is so after an exec,
 * after the time limit, and, if the table has no thread, while the process is dying, or, except in
 * a target's first scan, if descriptors or memory ran out.
 */
must_check int attach_scan(struct traced_process *t);

/*
 * Called at each tick: scans if it is time to, and the number of threads in /proc is another than
 * after the last scan, or refused threads are to be tried again. So it finds threads to which the
 * kernel has not attached capture: those that are made with CLONE_UNTRACED.
 */
void attach_check(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/*
 * Ends a scan that waits to go on: closes the directory of its pass over /proc/PID/task (struct
 * scan_pass, state.h). The next attach_scan() begins anew.
 */
void attach_end_pass(struct traced_process *t);

/*
 * Call this after capture has detached from all threads: seizes those in the table again, and frees
 * the dead ones.
 */
void attach_known_again(struct traced_process *t);

#endif
