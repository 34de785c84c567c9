/*
 * Detects that a process executes another program, where no stop reports it.
 *
 * PTRACE_EVENT_EXEC reports most of them. One that happened while capture was not attached, or
 * whose leader was dead, leaves two proofs: the auxiliary vector is another program's, or the
 * leader is not the thread that capture has attached to.
 */
#ifndef LIB_CAPTURE_EXEC_H
#define LIB_CAPTURE_EXEC_H

#include <stdbool.h>

#include "lib/capture/state.h"

/*
 * For a new target: reads the auxiliary vector. Returns 0, -EACCES if this process may not read
 * the target's files, or -ENOEXEC for a 32-bit program.
 */
must_check int exec_read_first(struct traced_process *t);

/*
 * Looks for the proofs, and calls exec_happened if there is one. Where the files cannot be read,
 * sets exec.doubt, and the next tick asks again. Opens files: not while a thread is stopped.
 * Threads that capture has just seized must be in the table.
 */
void exec_check(struct traced_process *t);

/*
 * The process has executed another program, which ends all threads but the caller of exec. Frees
 * all threads, writes RECORD_EXEC, and reports CAPTURE_EXEC. Only for a proven exec: a live thread
 * may be in the middle of a resumed call.
 */
void exec_happened(struct traced_process *t);

/*
 * Returns true if capture has let go of the leader, which dies, and no exec has replaced it since.
 */
bool exec_leader_dies(struct traced_process *t);

#endif
