/*
 * Logs to stderr, a line per event: "sentry-profd: warning: text". Control characters are
 * escaped, so that text of a target cannot forge a line. If stderr is the systemd journal, a
 * priority precedes the line: "<4>" (sd-daemon(3)).
 *
 * Errors and warnings that repeat are suppressed and counted (daemon/common/log_limit.h).
 */
#ifndef DAEMON_COMMON_LOG_H
#define DAEMON_COMMON_LOG_H

#include <stdbool.h>

#include "lib/base/util.h"

/* The variable by which systemd says that stderr is the journal. Children must inherit it. */
#define LOG_JOURNAL_VARIABLE "JOURNAL_STREAM"

/* name begins every line; it is a string literal. debug: log_debug() logs. */
void log_init(const char *name, bool debug);

/* Returns true if stderr is the journal. */
bool log_goes_to_journal(void);

/* Sets a prefix for the text of all following lines; "": none. */
#define LOG_SUBJECT_SIZE 512
void log_about(const char *subject);

void log_error(const char *format, ...) printf_like(1, 2);
void log_warning(const char *format, ...) printf_like(1, 2);
/* Logs a line if log_init() got debug. Never suppressed. */
void log_debug(const char *format, ...) printf_like(1, 2);

/* Logs an entry of a finite list, such as the faults of a file: never suppressed. */
void log_listed(bool is_warning, const char *format, ...) printf_like(2, 3);

/*
 * Reports suppressed lines whose window is over; for a loop that may log nothing for long.
 * Each logged line does that, too, and the exit of the process reports the remaining ones.
 */
void log_check(void);

#endif
