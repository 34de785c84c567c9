/*
 * Detects an exec that no stop has reported. PTRACE_EVENT_EXEC reports most execs, but no exec
 * while capture is not attached or after the leader has died. Then one of two facts proves the
 * exec: the auxiliary vector is another program's, or the leader is not the thread that capture has
 * attached to.
 */
#ifndef LIB_CAPTURE_EXEC_H
#define LIB_CAPTURE_EXEC_H

#include <stdbool.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Called for a new target. Reads the auxiliary vector. Returns 0, -EACCES if capture may not read
 * the target's files in /proc, or -ENOEXEC for a 32-bit program.
 */
must_check int exec_read_first(struct traced_process *t);

/*
 * Checks both facts, and calls exec_happened if one proves an exec. If the files cannot be read,
 * sets exec.doubt, and the next tick checks again. Opens files, so no thread may be stopped.
 * Threads that capture has just seized must be in the table. After an exec, pointers to threads of
 * t are invalid.
 */
void exec_check(struct traced_process *t);

/* Calls exec_check() at each tick while the last check had no answer, and else every 512 ticks. */
void exec_check_tick(struct traced_process *t, uint64_t tick, uint64_t previous);

/*
 * Compares the rights of the process with those that capture_set_user() has set, and decides by
 * them whether samples are taken. Returns false if not.
 */
bool exec_compare_rights(struct traced_process *t);

/*
 * Handles an exec, which ends all threads but the one that called it. Frees all threads, writes
 * RECORD_EXEC, and reports CAPTURE_EXEC. A program with other rights than the target's user's is
 * not sampled (capture_set_user). The thread that called exec is added again by the caller
 * (tracees_adopt), or by the scan of the next tick. Call this only if the exec is proven: otherwise
 * the state of system calls that are being resumed would be freed while their threads live, and
 * these calls would return wrong results.
 */
void exec_happened(struct traced_process *t);

/*
 * Returns true if capture has detached from the leader at its PTRACE_EVENT_EXIT, and no exec has
 * replaced the leader since.
 */
/* Capture has detached from the leader, which dies. */
void exec_leader_begins_to_die(struct traced_process *t);

bool exec_leader_dies(struct traced_process *t);

#endif
