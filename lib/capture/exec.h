/*
 * Handles execs, and detects those that no stop has reported. PTRACE_EVENT_EXEC reports most execs,
 * but no exec while capture is not attached or after the leader has died. Then one of two facts
 * proves the exec: the auxiliary vector in /proc/PID/auxv is another program's, or the process's
 * leader is not the thread that capture has attached to.
 */
#ifndef LIB_CAPTURE_EXEC_H
#define LIB_CAPTURE_EXEC_H

#include <stdbool.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Called for a new target. Reads and keeps the auxiliary vector, with which exec_check() compares.
 * Returns 0, -EACCES if capture may not read the target's files in /proc, or -ENOEXEC for a 32-bit
 * program. Any other failure to read returns 0, and a later check reads the vector.
 */
must_check int exec_read_first(struct traced_process *t);

/*
 * Checks both facts, and calls exec_happened() if one proves an exec: then all threads of t are
 * freed, so pointers to them are invalid. If the files cannot be read, or t is still in its first
 * scan, sets t->exec.doubt, and the next tick checks again. Opens files, so no thread may be
 * stopped.
 */
void exec_check(struct traced_process *t);

/*
 * Calls exec_check() if t->exec.doubt is set, otherwise every 512 ticks. previous: the number of
 * the process's tick before.
 */
void exec_check_tick(struct traced_process *t, uint64_t tick, uint64_t previous);

/*
 * Compares the owner of the process's files in /proc with that of capture_set_user(), and sets
 * t->phase. If the owners are equal, or capture_set_user() was not called, sets TRACED_SAMPLED and
 * returns true; otherwise sets TRACED_AWAITS_EXEC and returns false. If t->phase is neither of
 * these two at the call, changes nothing and returns true.
 */
bool exec_compare_rights(struct traced_process *t);

/*
 * Handles an exec, which ends all threads but the one that called it. Frees all threads, writes
 * RECORD_EXEC, and reports CAPTURE_EXEC. If the program has other rights than the target's user
 * (exec_compare_rights), also reports CAPTURE_OTHER_RIGHTS. The caller adds the thread that called
 * exec again (tracees_adopt); otherwise the scan of the next tick does.
 *
 * Call this only if the exec is proven. Otherwise the state of resumed system calls
 * (restart/resume.h) is freed while their threads live, and these calls return wrong results.
 */
void exec_happened(struct traced_process *t);

/* Call this when capture has detached from the leader, which dies, at its PTRACE_EVENT_EXIT. */
void exec_leader_begins_to_die(struct traced_process *t);

/* Returns true after exec_leader_begins_to_die(), until an exec has replaced the leader. */
bool exec_leader_dies(struct traced_process *t);

#endif
