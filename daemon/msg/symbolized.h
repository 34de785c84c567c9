/*
 * Writes and parses the answer to MSG_SYMBOLIZE: the functions, source files and lines at each
 * address that was asked for. sentry-profd-unwind writes the answer. sentry-profctl parses the
 * answer and checks all of it, because a malicious file can have taken over unwind.
 */
#ifndef DAEMON_MSG_SYMBOLIZED_H
#define DAEMON_MSG_SYMBOLIZED_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

/*
 * The largest answer, in bytes. Its names take up to LOOKUP_PAYLOAD_MAX (lib/aggregate/lookup.h),
 * everything else about 100 KB.
 */
#define SYMBOLIZED_BYTES_MAX (32u << 20)

/* The texts are UTF-8 of 1 to NAME_SIZE - 1 bytes (lib/aggregate/names.h). */
struct symbolized_frame {
	const char *function; /* NULL: unknown */
	const char *file;     /* NULL: unknown */
	uint32_t line;	      /* at most INT32_MAX; 0: unknown */
};

/* The functions at one address. */
struct symbolized_pc {
	/*
	 * Innermost first. The last frame is the function that contains the address. The frames
	 * before it are functions that were inlined there; each has a name.
	 */
	struct symbolized_frame frames[UNWIND_LINES_MAX];
	size_t n; /* at least 1 */
};

/*
 * Appends the functions at the next address to the answer. The caller makes *pc as the structs
 * above say: this function does not check it, and symbolized_next() refuses anything else. Returns
 * 0, or the error of buf_add() (lib/base/buf.h).
 */
must_check int symbolized_add(struct buf *out, const struct symbolized_pc *pc);

/* The part of an answer that is not parsed yet. The caller sets it to the whole answer first. */
struct symbolized_cursor {
	const uint8_t *at;
	size_t left; /* bytes from at on */
};

/*
 * Parses the functions at the next address and advances the cursor. The texts of *ret point into
 * the answer. Returns 0, or -EBADMSG if the answer is malformed or has ended. The caller calls the
 * function once for each address that it asked for, and then checks that c->left is 0.
 */
must_check int symbolized_next(struct symbolized_cursor *c, struct symbolized_pc *ret);

#endif
