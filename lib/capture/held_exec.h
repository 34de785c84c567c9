/*
 * Processes that are held at the stop of their exec (PTRACE_EVENT_EXEC) until the caller has
 * decided about the new program: a program that must not be traced is left before its first
 * instruction. The new program has one thread then, so PTRACE_DETACH at this stop leaves it whole.
 *
 * If the tracing thread ends meanwhile, the kernel lets the held processes run.
 *
 * A file that the caller trusts (capture_trust_exec) is not held again, which would cost each exec
 * a few hundred microseconds. The cache is by the owner of the process and the identity of the
 * file.
 */
#ifndef LIB_CAPTURE_HELD_EXEC_H
#define LIB_CAPTURE_HELD_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct capture;
struct traced_process;

/* The longest time for which a process is held: then capture leaves it. */
#define HELD_EXEC_NS NS_PER_SEC

/*
 * For reap.h: process pid is at the stop of its exec. Returns true if it is held: its file is not
 * trusted, the caller has asked for that (capture_options.executed), and fewer than HELD_EXEC_MAX
 * others are. The threads
 * of the former program are freed then.
 */
must_check bool held_exec_begin(struct capture *c, int32_t pid);

/*
 * For reap.h: the process is held no longer, because it has died or the caller has decided. Returns
 * false if it was not held.
 */
bool held_exec_end(struct capture *c, int32_t pid);

bool held_exec_is(const struct capture *c, int32_t pid);

/* A followed child becomes a target: t->exec.held is true if it is held. */
void held_exec_is_target(struct traced_process *t);

/* For detach.h: a new tracing thread has begun, in which no process is held. */
void held_exec_forget_all(struct capture *c);

/* Returns a process that is held for HELD_EXEC_NS or longer; 0: there is none. */
int32_t held_exec_overdue(const struct capture *c);

/*
 * The caller has decided about a process that capture_options.executed has reported: it goes on as
 * a tracee, or capture leaves it (leave). A target that is left ends with CAPTURE_GONE. If the
 * process is not held any more, and is a target, capture_remove() is called for it.
 */
void capture_decide_exec(struct capture *c, int32_t pid, bool leave);

/* Processes of the same owner that execute the file of this held process are not held from now on.
 */
void capture_trust_exec(struct capture *c, int32_t pid);

/*
 * Leaves the processes that are held for too long. The caller calls it some times a second while
 * capture_holds_execs() returns true.
 */
void capture_leave_overdue_execs(struct capture *c);
bool capture_holds_execs(const struct capture *c);

#endif
