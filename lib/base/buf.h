/*
 * A growable byte buffer with an upper bound.
 *
 * The bytes are always followed by a NUL that does not count, so that text can
 * be handed to functions that want a string. What the buffer leaves behind as
 * it grows is not zeroed.
 */
#ifndef LIB_BASE_BUF_H
#define LIB_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

struct buf {
	char *data; /* NULL until the first byte is added */
	size_t len;
	size_t cap;
	size_t max; /* bytes, the NUL not counted */
};

/* An empty buffer that never holds more than max bytes. Allocates nothing. */
void buf_init(struct buf *b, size_t max);

/* Frees the bytes; b is as after buf_init. Takes NULL. */
void buf_fini(struct buf *b);

/* The same, and zeros the bytes first: they hold a secret. */
void buf_wipe(struct buf *b);

/* Empties the buffer and keeps its memory. */
void buf_clear(struct buf *b);

/*
 * Each appends and returns 0, or leaves the buffer as it was and returns
 * -ENOMEM, or -E2BIG if max would be passed.
 */
must_check int buf_add(struct buf *b, const void *bytes, size_t n);
must_check int buf_add_string(struct buf *b, const char *s);
must_check int buf_printf(struct buf *b, const char *format, ...) printf_like(2, 3);

/*
 * Reads fd to its end, at most max bytes in all. Returns 0, -E2BIG if there is
 * more (what was read stays), -ENOMEM or read(2)'s error.
 */
must_check int buf_read_fd(struct buf *b, int fd);

/* The text, "" if there is none. Valid until the next change. */
const char *buf_string(const struct buf *b);

#endif
