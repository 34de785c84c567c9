/*
 * How often a line of one kind is said: a service that runs for months beside
 * a target that does the same wrong thing each second must not fill a journal.
 * What is left out is counted, and said with the last of it.
 *
 * A kind is a format string, by its address: lines that differ in a pid are of
 * one kind. Knows no clock and writes nothing.
 */
#ifndef DAEMON_COMMON_LOG_LIMIT_H
#define DAEMON_COMMON_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* So many of a kind are said in a window that begins with the first. */
#define LOG_LIMIT_LINES	    30
#define LOG_LIMIT_WINDOW_NS (60 * NS_PER_SEC)

/* More than any process here has at a time. What has no room is not limited. */
#define LOG_LIMIT_KINDS 64

/* Of the last line that was left out; what is longer is cut off. */
#define LOG_LIMIT_TEXT 256

struct log_limit_kind {
	const char *format; /* NULL: a free place */
	uint64_t since_ns;
	uint64_t lines; /* said and left out */
	const char *level;
	char last[LOG_LIMIT_TEXT];
};

/* All zeros in the beginning. */
struct log_limit {
	struct log_limit_kind kinds[LOG_LIMIT_KINDS];
};

/*
 * A line is to be said: may it? level and format are string literals; text is
 * the line, of which a copy may be kept.
 */
bool log_limit_take(struct log_limit *l, const char *level, const char *format, const char *text,
		    uint64_t now_ns);

/* What was left out of a kind, and has not been told. */
struct log_limit_left {
	const char *level;
	uint64_t lines;
	char last[LOG_LIMIT_TEXT];
};

/*
 * The next kind of which something was left out and whose window is over by
 * now_ns; it is forgotten. Returns false if there is none.
 */
bool log_limit_left(struct log_limit *l, uint64_t now_ns, struct log_limit_left *ret);

#endif
