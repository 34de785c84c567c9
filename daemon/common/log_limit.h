/*
 * Limits how often a line of one kind is logged: a service that runs for months beside a
 * target that does the same wrong thing each second must not fill the journal. Suppressed
 * lines are counted. The report of their number has the level and the text of one of them: the last
 * line of the gravest level among them. Used by daemon/common/log.c.
 *
 * A kind is a format string, compared by its address: lines that differ in a pid are of one
 * kind. Example: 25 lines of one kind come within 30 s. The first 10 are logged, and 15 are
 * suppressed. 60 s after the first line log_limit_next_suppressed() returns the number 15.
 *
 * The module reads no clock and writes nothing. now_ns: CLOCK_MONOTONIC.
 */
#ifndef DAEMON_COMMON_LOG_LIMIT_H
#define DAEMON_COMMON_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * The usual lines_max: the most lines of one kind that are logged in a window. A window of a kind
 * lasts LOG_LIMIT_WINDOW_NS, and begins with the first line of the kind after the former window.
 */
#define LOG_LIMIT_LINES	    10
#define LOG_LIMIT_WINDOW_NS (60 * NS_PER_SEC)

/*
 * The number of slots, one for each kind: more kinds than any process logs at a time. When the
 * window of a kind is over and its suppressed lines, if any, have been reported, another kind may
 * get its slot. If no slot is free for a kind, all its lines are logged.
 */
#define LOG_LIMIT_KINDS 64

/* The size of the copy of a suppressed line, with the NUL; a longer line is cut off. */
#define LOG_LIMIT_TEXT 256

struct log_limit_kind {
	const char *format; /* NULL: the slot is free */
	uint64_t since_ns;  /* start of the window */
	uint64_t lines;	    /* in the window, logged and suppressed */
	uint64_t lines_max; /* the most lines that are logged in the window */
	/* Of the last suppressed line of the gravest level; set if a line is suppressed. */
	const char *level; /* as given to log_limit_take() */
	char last[LOG_LIMIT_TEXT];
};

/* All zeros: no line has been logged. */
struct log_limit {
	struct log_limit_kind kinds[LOG_LIMIT_KINDS];
};

/*
 * Counts a line of the kind format. text: the line. In a window lines_max lines of the kind are
 * logged; the first call of the window sets lines_max for the whole window. Returns true if the
 * caller must log the line. Returns false if the line is suppressed. Then text replaces the copy of
 * the last suppressed line, unless that line is of a graver level. level and format are string
 * literals, which are not copied. level begins with a digit, the priority of syslog(3): a smaller
 * digit is graver.
 *
 * Call log_limit_next_suppressed() first, until it returns false. Otherwise a kind with suppressed
 * lines gets no new window, and its lines stay suppressed.
 */
bool log_limit_take(struct log_limit *l, const char *level, const char *format, uint64_t lines_max,
		    const char *text, uint64_t now_ns);

/* The suppressed lines of one kind. */
struct log_limit_suppressed {
	const char *level;
	uint64_t lines;
	char last[LOG_LIMIT_TEXT];
};

/*
 * Finds a kind that has suppressed lines and whose window is over. Writes their number and the last
 * one of the gravest level to *ret, frees the slot of the kind, and returns true: the caller
 * reports the lines and calls again. Returns false if there is no such kind.
 */
bool log_limit_next_suppressed(struct log_limit *l, uint64_t now_ns,
			       struct log_limit_suppressed *ret);

#endif
