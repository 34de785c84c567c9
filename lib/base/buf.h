/*
 * A growable buffer of bytes with a maximum size, for text and for bytes that are read or made
 * piece by piece.
 *
 * A NUL that is not part of the length follows the bytes, so text can be passed on as a string.
 * When the buffer grows, the bytes may move, and their old place is not zeroed. So for a secret
 * call buf_reserve() before the first byte is added, and free the buffer with buf_wipe().
 */
#ifndef LIB_BASE_BUF_H
#define LIB_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

struct buf {
	char *data; /* NULL until the first byte is added */
	size_t len; /* bytes, the NUL not counted */
	size_t cap; /* bytes that are allocated */
	size_t max; /* the largest len */
};

/* Initialises an empty buffer of at most max bytes. Does not allocate. */
void buf_init(struct buf *b, size_t max);

/* Frees the bytes; b is as after buf_init(). b may be NULL. */
void buf_fini(struct buf *b);

/* Allocates room for max bytes, so that the bytes never move later. Returns 0 or -ENOMEM. */
must_check int buf_reserve(struct buf *b);

/* Zeroes the len bytes and frees them, for a secret; b is as after buf_init(). */
void buf_wipe(struct buf *b);

/* Empties the buffer; its memory stays allocated. */
void buf_clear(struct buf *b);

/*
 * Append n bytes, a string, or formatted text as of printf(3). Return 0; -E2BIG if max would be
 * exceeded; or -ENOMEM. After an error the buffer is unchanged.
 */
must_check int buf_add(struct buf *b, const void *bytes, size_t n);
must_check int buf_add_string(struct buf *b, const char *s);
must_check int buf_printf(struct buf *b, const char *format, ...) printf_like(2, 3);

/*
 * Appends what read(2) returns from fd until the end of the file. Returns 0; -E2BIG if the file has
 * more bytes than fit; -ENOMEM; or the error of read(2). After an error the bytes that were read
 * stay in the buffer.
 */
must_check int buf_read_fd(struct buf *b, int fd);

/* Returns the bytes as a string, "" if the buffer is empty. Valid until the buffer changes. */
const char *buf_string(const struct buf *b);

#endif
