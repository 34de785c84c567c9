/*
 * Says why a process cannot be profiled, and what the user can do about it. Each refusal_log_*()
 * logs at most one line: a warning if its comment says so, else an error. The other functions write
 * a text, for `sentry-profctl doctor`.
 */
#ifndef DAEMON_PROCESS_REFUSAL_H
#define DAEMON_PROCESS_REFUSAL_H

#include <stdbool.h>

#include "daemon/process/process.h"

/*
 * Logs the fault that process_look(pid, ...) has returned; p is what that call has written. Returns
 * 0, without a line, for PROCESS_OK. Else returns -ESRCH (gone, zombie), -EINVAL (kernel thread,
 * thread), -EBUSY (traced), -EACCES (unreadable) or -EMFILE (shortage).
 */
must_check int refusal_log_look(enum process_fault fault, int32_t pid, const struct process *p);

/* The size of a buffer for a text, in bytes with the NUL. */
#define REFUSAL_TEXT_SIZE 1024

/* Writes why this process may not trace pid, a process of user uid. */
void refusal_not_permitted(int32_t pid, uint32_t uid, char ret[REFUSAL_TEXT_SIZE]);

/*
 * Writes that process tracer traces pid. Returns true if tracer has the name of
 * sentry-profd-capture: then the text says that another sentry-profd profiles pid.
 */
bool refusal_traced(int32_t pid, int32_t tracer, char ret[REFUSAL_TEXT_SIZE]);

/* Logs why capture cannot attach to pid, a process of user uid: error is the (positive) errno. */
void refusal_log_attach(int32_t pid, uint32_t uid, int error);

/* For the status: why a process with LeakSanitizer is not profiled; continues "process N". */
#define REFUSAL_LEAK_CHECK                                            \
	"has LeakSanitizer, which does not work in a traced process " \
	"(ASAN_OPTIONS=detect_leaks=0 switches it off; leak_check = attach ignores it)"

/*
 * Logs that pid is not profiled because it has LeakSanitizer, with what the user can do.
 * - is_held: pid is the process that was to execute COMMAND (`-- COMMAND`), and does not execute
 *   it. The line is an error, whatever is_error is.
 * - is_error: a user has named the process, and the line is an error. false: a section of the
 *   configuration matches the process, and the line is a warning.
 * - is_asan: LeakSanitizer is part of AddressSanitizer.
 */
void refusal_log_leak_check(int32_t pid, bool is_held, bool is_error, bool is_asan);

/* Logs that pid ended before capture was attached to it. */
void refusal_log_ended(int32_t pid);

/*
 * Logs that pid was not profiled, when the daemon ends and capture was never attached to pid.
 * traced: another process traced pid all the time. If false, the line says that the daemon ended
 * before it could attach.
 */
void refusal_log_not_profiled(int32_t pid, bool traced);

/*
 * Warns that capture is not attached to n threads of pid, if error is EMFILE or ENFILE, and returns
 * true. For other errors, logs nothing and returns false.
 */
bool refusal_log_threads(int32_t pid, uint64_t n, int error);

/*
 * Warns that another process traces pid, and that profiling starts when this tracer detaches.
 * tracer is the pid of the other process; 0: unknown.
 */
void refusal_log_traced_now(int32_t pid, int32_t tracer);

#endif
