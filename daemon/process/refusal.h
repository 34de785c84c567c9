/*
 * Says why a process cannot be profiled, and what the user can do about that. Each refusal_log
 * function logs at most one line, an error unless the function says otherwise; the others write the
 * text for sentry-profctl doctor.
 */
#ifndef DAEMON_PROCESS_REFUSAL_H
#define DAEMON_PROCESS_REFUSAL_H

#include <stdbool.h>

#include "daemon/process/process.h"

/*
 * Logs the fault that process_look() found of pid. Returns 0 with PROCESS_OK, or -errno.
 */
must_check int refusal_log_look(enum process_fault fault, int32_t pid, const struct process *p);

/* The size of a buffer for a text, in bytes with the NUL: a name of PROCESS_NAME_SIZE, and words.
 */
#define REFUSAL_TEXT_SIZE 1024

/* Writes why this process may not trace pid, a process of user uid. */
void refusal_not_permitted(int32_t pid, uint32_t uid, char ret[REFUSAL_TEXT_SIZE]);

/* Writes that tracer traces pid. Returns whether tracer is a sentry-profd-capture. */
bool refusal_traced(int32_t pid, int32_t tracer, char ret[REFUSAL_TEXT_SIZE]);

/* Logs that capture cannot attach to pid, a process of user uid, because of error, an errno. */
void refusal_log_attach(int32_t pid, uint32_t uid, int error);

/* Why a process with LeakSanitizer is not profiled, for the status: follows "process N". */
#define REFUSAL_LEAK_CHECK                                            \
	"has LeakSanitizer, which does not work in a traced process " \
	"(ASAN_OPTIONS=detect_leaks=0 switches it off; leak_check = attach ignores it)"

/*
 * Logs that pid is not profiled because it has LeakSanitizer, with what the user can do. is_held:
 * pid is the command of sentry-profd, which is not started. is_error: a user has named the process,
 * else a section matches it, and the line is a warning. is_asan: LeakSanitizer is part of
 * AddressSanitizer.
 */
void refusal_log_leak_check(int32_t pid, bool is_held, bool is_error, bool is_asan);

/* Logs that pid ended before capture was attached to it. */
void refusal_log_ended(int32_t pid);

/*
 * Logs that pid was never attached before the daemon ended. traced: because another process
 * traced it.
 */
void refusal_log_not_profiled(int32_t pid, bool traced);

/*
 * Warns that capture is not attached to n threads of pid. Returns true if error is EMFILE or
 * ENFILE. For other errors, logs nothing and returns false.
 */
bool refusal_log_threads(int32_t pid, uint64_t n, int error);

/*
 * Warns that pid is traced by another process, tracer (0: unknown), and is profiled later,
 * when that tracer detaches.
 */
void refusal_log_traced_now(int32_t pid, int32_t tracer);

#endif
