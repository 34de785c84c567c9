/*
 * The answer of MSG_SYMBOLIZED: what lies at each address of a file. Written by
 * sentry-profd-unwind, read by sentry-profctl, which trusts none of it: unwind
 * may have been taken over by the file that it reads.
 */
#ifndef DAEMON_MSG_SYMBOLIZED_H
#define DAEMON_MSG_SYMBOLIZED_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

/* The names of an answer take LOOKUP_PAYLOAD_MAX; the rest is some 100 KB. */
#define SYMBOLIZED_BYTES_MAX (32u << 20)

struct symbolized_frame {
	const char *function; /* NULL: not known, as the next */
	const char *file;
	uint32_t line; /* 0: not known */
};

/* One address. */
struct symbolized_place {
	/*
	 * Innermost first: functions that were inlined there, each with a name;
	 * the last is the function around them.
	 */
	struct symbolized_frame frames[UNWIND_LINES_MAX];
	size_t n; /* at least 1 */
};

/* Appends a place. Returns 0, or the error of buf_add. */
must_check int symbolized_add(struct buf *out, const struct symbolized_place *place);

/* What is left of an answer. */
struct symbolized_cursor {
	const uint8_t *at;
	size_t left;
};

/*
 * Reads the next place; its texts, valid UTF-8 of less than NAME_SIZE bytes,
 * lie in the cursor's bytes. Returns 0, or -EBADMSG.
 */
must_check int symbolized_next(struct symbolized_cursor *c, struct symbolized_place *ret);

#endif
