/*
 * Handles the execs of targets. A stop (PTRACE_EVENT_EXEC) reports most of them, or a record if
 * nothing is traced (observe.h): reap.c or observe.c then calls exec_happened(). No stop reports an
 * exec while capture is not attached, or after the leader has died, and a record can be lost.
 * exec_check() detects such an exec by one of two facts:
 * - /proc/PID/auxv has the auxiliary vector of another program;
 * - the leader is not the thread that capture has attached to (checked with tracing only).
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
 * Checks both facts, and calls exec_happened() if one proves an exec: this frees all threads of t,
 * so pointers to them are invalid. Opens files, so call it only while no thread is stopped.
 *
 * If the check is not possible, sets t->exec.doubt instead, and the next tick checks again. The
 * check is not possible while t is in its first scan for threads (TRACED_NEW), and if a file in
 * /proc cannot be read (PROC_LACK, proc/proc.h).
 */
void exec_check(struct traced_process *t);

/*
 * Returns true if the leader runs the program that capture knows, or is dead. Returns false after
 * an exec that capture has not handled yet, or if the auxiliary vector cannot be read. Opens a
 * file.
 */
bool exec_program_is_known(struct traced_process *t);

/*
 * Call this at each tick of the process. Calls exec_check() if t->exec.doubt is set, otherwise
 * every 512 ticks. previous: the number of the process's previous tick.
 */
void exec_check_tick(struct traced_process *t, uint64_t tick, uint64_t previous);

/*
 * Compares the owner of the process's files in /proc with the files_uid of capture_set_user():
 * - equal, or capture_set_user() was not called: sets t->phase to TRACED_SAMPLED, returns true;
 * - different, or not readable: sets t->phase to TRACED_AWAITS_EXEC, returns false.
 *
 * In any other phase than these two, compares and changes nothing, and returns true.
 */
bool exec_compare_rights(struct traced_process *t);

/*
 * Handles an exec, which ends all threads but one. Frees all threads of t, also the remaining one,
 * writes RECORD_EXEC, and reports CAPTURE_EXEC. If exec_compare_rights() returns false, also
 * reports CAPTURE_OTHER_RIGHTS. The caller then adds the remaining thread (tracees_adopt); if it
 * does not, the scan of the next tick (attach.h) does.
 *
 * Call this only if the exec is proven. Otherwise the state of resumed system calls
 * (restart/resume.h) is freed while their threads live, and these calls return wrong results.
 */
void exec_happened(struct traced_process *t);

/*
 * exec_leader_begins_to_die(): call it when capture has detached from the leader at the leader's
 * PTRACE_EVENT_EXIT. From then on exec_leader_dies() returns true, and capture does not seize the
 * leader again, until an exec has replaced it. exec_leader_dies() opens a file.
 */
void exec_leader_begins_to_die(struct traced_process *t);
bool exec_leader_dies(struct traced_process *t);

#endif
