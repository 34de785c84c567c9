/*
 * Lines for the operator on stderr: "sentry-profd: warning: text". One event,
 * one line: control bytes in the text are shown escaped, so that nothing a
 * target wrote can make up a line of its own. Where stderr is the journal's,
 * a priority stands before it (sd-daemon(3)): "<4>".
 *
 * Of errors and warnings that repeat, some are left out, and counted
 * (daemon/common/log_limit.h).
 */
#ifndef DAEMON_COMMON_LOG_H
#define DAEMON_COMMON_LOG_H

#include <stdbool.h>

#include "lib/base/util.h"

/* What says that stderr is the journal's; a child has to be given it. */
#define LOG_JOURNAL_VARIABLE "JOURNAL_STREAM"

/* name stands before every line, a string literal. debug: log_debug shows. */
void log_init(const char *name, bool debug);

/* True if stderr is the journal's, as of a service or what it starts. */
bool log_goes_to_journal(void);

/* What all further lines are about stands before each; "": nothing. */
#define LOG_SUBJECT_SIZE 512
void log_about(const char *subject);

void log_error(const char *format, ...) printf_like(1, 2);
void log_warning(const char *format, ...) printf_like(1, 2);
void log_debug(const char *format, ...) printf_like(1, 2);

/*
 * An error or a warning of a list that has an end, as the faults of a file:
 * none of them is left out.
 */
void log_listed(bool is_warning, const char *format, ...) printf_like(2, 3);

/*
 * Tells of what was left out, once that is over; each line that is said does
 * that, too. At the process's exit all that is left is told.
 */
void log_check(void);

#endif
