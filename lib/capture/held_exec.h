/*
 * Holds processes at the stop of their exec (PTRACE_EVENT_EXEC) until the user of capture.h, here
 * called the caller, has decided about the new program. Some programs must not be traced: at this
 * stop, before the program's first instruction, capture can still leave the process. To leave is to
 * detach. The new program has one thread then, so one PTRACE_DETACH is enough.
 *
 * If the tracing thread ends while processes are held, the kernel lets these processes run.
 *
 * To hold a process costs its exec a few hundred microseconds. So capture keeps a cache of files
 * that the caller trusts (capture_trust_exec), and does not hold processes that execute them. An
 * entry is the identity of a file (lib/base/file_identity.h), and the owner of the processes for
 * which it is valid: the uid that owns their files in /proc.
 */
#ifndef LIB_CAPTURE_HELD_EXEC_H
#define LIB_CAPTURE_HELD_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct capture;
struct traced_process;

/* The longest time for which a process is held. Then capture leaves the process. */
#define HELD_EXEC_NS NS_PER_SEC

/*
 * For reap.h: call this when process pid is at the stop of its exec. Returns true if the process is
 * held from now on; then the former program's threads are out of capture's table. Returns false if
 * - the cache has the executed file, or
 * - HELD_EXEC_MAX processes are held already, or
 * - capture_options.executed is NULL or returns false.
 */
must_check bool held_exec_begin(struct capture *c, int32_t pid);

/*
 * For reap.h: notes that the process is held no longer, because it has died or the caller has
 * decided. Does not continue it. Returns false if it was not held.
 */
bool held_exec_end(struct capture *c, int32_t pid);

/* Returns true if the process is held. */
bool held_exec_is(const struct capture *c, int32_t pid);

/* Call this for a new target, which may be a child that is held already: sets t->exec.held. */
void held_exec_is_target(struct traced_process *t);

/*
 * For detach.h: notes that no process is held any more. Call this in a new tracing thread, because
 * the end of the former one has let all held processes run.
 */
void held_exec_forget_all(struct capture *c);

/* Returns the pid of a process that has been held for HELD_EXEC_NS or longer; 0: there is none. */
int32_t held_exec_overdue(const struct capture *c);

/*
 * Carries out the caller's decision about a process that capture_options.executed has reported:
 * - leave false: the process goes on as a tracee. If it is a target, capture reports CAPTURE_EXEC.
 *   Two exceptions: capture leaves a process whose new program is a 32-bit one, and reports
 *   CAPTURE_FOREIGN if the process is a target. Capture leaves a process that is no target, unless
 *   it follows children (capture_options.born).
 * - leave true: capture leaves the process. If it is a target, capture reports CAPTURE_GONE.
 *
 * If the process is no longer held, leave true calls capture_remove() if the process is a target,
 * and leave false does nothing.
 */
void capture_decide_exec(struct capture *c, int32_t pid, bool leave);

/*
 * Adds the file of this held process to the cache: processes of the same owner that execute it are
 * not held from now on. Call it before capture_decide_exec(). Does nothing if the process is not
 * held, or if its file could not be identified.
 */
void capture_trust_exec(struct capture *c, int32_t pid);

/*
 * Leaves the processes that are held for HELD_EXEC_NS or longer. The caller calls it several times
 * a second while capture_holds_execs() returns true, which means that a process is held.
 */
void capture_leave_overdue_execs(struct capture *c);
bool capture_holds_execs(const struct capture *c);

#endif
