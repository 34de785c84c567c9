/*
 * Logs to stderr, a line per event: "sentry-profd: TEXT" for an error, "sentry-profd: warning:
 * TEXT", "sentry-profd: info: TEXT", "sentry-profd: debug: TEXT". Control characters are escaped,
 * so that text of a target cannot forge a line. If stderr is the systemd journal, a priority
 * precedes the line: "<4>" (sd-daemon(3)).
 *
 * If lines of one format repeat too often, they are suppressed and counted
 * (daemon/common/log_limit.h), except at debug level. Lines for which stderr has no room are lost
 * (log_output.h); a line with their number precedes the next line that is written.
 */
#ifndef DAEMON_COMMON_LOG_H
#define DAEMON_COMMON_LOG_H

#include <stdbool.h>

#include "lib/base/util.h"

/* The environment variable in which systemd names the journal's stream (systemd.exec(5)). */
#define LOG_JOURNAL_VARIABLE "JOURNAL_STREAM"

/*
 * Call it at the start of a program; a later call replaces name and debug. name begins every line
 * and is not copied. debug: log_debug() writes lines.
 */
void log_init(const char *name, bool debug);

/* Returns true if log_init() has found that stderr is the journal. */
bool log_goes_to_journal(void);

/*
 * Sets the subject of the following lines: "subject: " precedes their text. Lines of log_relay()
 * get none. "": no subject. The subject is copied, and cut off if it has more than
 * LOG_SUBJECT_SIZE - 3 bytes.
 */
#define LOG_SUBJECT_SIZE 512
void log_set_subject(const char *subject);

/*
 * Each of these functions logs a line of its level. format: a string literal without a newline. A
 * text of more than 5 KB is cut off.
 */
void log_error(const char *format, ...) printf_like(1, 2);
void log_warning(const char *format, ...) printf_like(1, 2);
/* For events that an administrator may want to look up later, and that need no action. */
void log_info(const char *format, ...) printf_like(1, 2);
/* Logs a line if log_init() got debug = true. Such lines are never suppressed. */
void log_debug(const char *format, ...) printf_like(1, 2);

/*
 * Logs an entry of a finite list, such as the faults of a file, as a warning or as an error. Such
 * entries are never suppressed.
 */
void log_list_entry(bool is_warning, const char *format, ...) printf_like(2, 3);

/*
 * Logs a line that another process has written. name: the name of that process's program, a string
 * literal. line: normally as this module writes lines to the journal, "<4>NAME: warning: text":
 * children write so because daemon/common/spawn.h sets their LOG_JOURNAL_VARIABLE. The process is
 * not trusted, so line can be any text. The logged line begins with name once, whether line has it
 * or not. A line without a priority ("<4>") is logged as an error. A line at debug level is dropped
 * if log_init() got debug = false.
 *
 * Rate limit: of all lines with the same name, LOG_RELAY_LINES are logged in a window
 * (daemon/common/log_limit.h), or all if log_init() got debug = true. Returns false if the limit
 * has suppressed this line, otherwise true.
 */
#define LOG_RELAY_LINES 100
bool log_relay(const char *name, const char *line);

/*
 * Logs the number of suppressed lines of each kind whose window (log_limit.h) is over, and the
 * number of lost lines. The functions above do the same before they log a line, and at exit(3) the
 * numbers not logged so far are logged. So only a loop that may log nothing for a long time has to
 * call this, in every turn.
 */
void log_report_suppressed(void);

/* Returns true if lines are lost and the log does not have their number yet. */
bool log_has_lost_lines(void);

#endif
