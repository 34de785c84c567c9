/*
 * A growable buffer of bytes with a maximum size. For text and for bytes that are read or made
 * piece by piece.
 *
 * The bytes are followed by a NUL that is not part of the length, so text can be passed on as a
 * string. When the buffer grows, the bytes may move, and their old place is not zeroed. So a buffer
 * for a secret gets all its room by buf_reserve() first, and is freed by buf_wipe().
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

/* Initialises an empty buffer of at most max bytes. Does not allocate. */
void buf_init(struct buf *b, size_t max);

/* Frees the bytes; b is as after buf_init(). b may be NULL. */
void buf_fini(struct buf *b);

/* Allocates room for max bytes, so that the bytes do not move any more. Returns 0 or -ENOMEM. */
must_check int buf_reserve(struct buf *b);

/* Zeroes the bytes and frees them: for a secret. */
void buf_wipe(struct buf *b);

/* Empties the buffer; its memory stays allocated. */
void buf_clear(struct buf *b);

/*
 * Append bytes, a string, or formatted text. Return 0; or -E2BIG if max would be exceeded, or
 * -ENOMEM, and leave the buffer unchanged.
 */
must_check int buf_add(struct buf *b, const void *bytes, size_t n);
must_check int buf_add_string(struct buf *b, const char *s);
must_check int buf_printf(struct buf *b, const char *format, ...) printf_like(2, 3);

/*
 * Appends what read(2) returns from fd up to its end. Returns 0; -E2BIG if the file has more than
 * fits; -ENOMEM; or the error of read(2). After an error the bytes that were read stay in the
 * buffer.
 */
must_check int buf_read_fd(struct buf *b, int fd);

/* Returns the text, "" if the buffer is empty. Valid until the buffer changes. */
const char *buf_string(const struct buf *b);

#endif
