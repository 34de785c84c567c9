/*
 * Attaches to the threads of a process that /proc/PID/task lists.
 *
 * PTRACE_SEIZE stops no thread. New threads of a traced thread are attached by the kernel; a scan
 * finds the others. A scan has a time limit, and goes on at a later tick (struct traced_scan).
 */
#ifndef LIB_CAPTURE_ATTACH_H
#define LIB_CAPTURE_ATTACH_H

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Seizes the threads that are not in the table, and counts those that cannot be seized. Returns the
 * number of new threads.
 *
 * If the table has no thread of the process at the end, returns an error: -EPERM, -EBUSY (another
 * tracer), an error of reading /proc, or 0 if no thread was listed. If held_up_ticks is also set,
 * there are more threads, and the caller calls attach_scan again at scan.tick. This includes a scan
 * that found no thread for lack of descriptors or memory, because that does not mean that the
 * process has ended.
 */
must_check int attach_scan(struct traced_process *t);

/* Ends the pass under way, if there is one, and closes its directory. */
void attach_end_pass(struct traced_process *t);

/*
 * Call this after capture has detached from all threads: seizes those in the table again, and frees
 * the dead ones.
 */
void attach_known_again(struct traced_process *t);

#endif
