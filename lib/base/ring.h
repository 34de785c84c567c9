/*
 * The ring: records go from one writer to one reader in a sealed memfd that
 * the reader maps read-only.
 *
 * The writer reads nothing back from the shared memory: positions live in the
 * two processes and travel as messages (the head from writer to reader, the
 * tail as a credit from reader to writer), each checked by who gets it.
 *
 * Positions are byte counts that only grow; position modulo size is the place
 * in the memory. A record never wraps: a pad record, which the reader passes
 * over by itself, leads to the next lap, where the rest is too small for it or
 * the reader is near; and over what is not read yet, so that the head may be up
 * to two laps before the tail.
 *
 * The reader trusts nothing but the memory's existence (the seals rule out
 * SIGBUS): a record whose size is wrong ends the ring with -EPROTO. It should
 * read each field once: the writer could change it in between.
 */
#ifndef LIB_BASE_RING_H
#define LIB_BASE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

#define RING_ALIGN 8

/* Every record starts with this. */
struct ring_record {
	uint32_t size; /* bytes, this header included, a multiple of RING_ALIGN
			*/
	uint32_t type; /* 0 is a pad; the rest is the users' */
};

/* 1 GiB: far above any use, so that size_t arithmetic cannot overflow. */
#define RING_SIZE_MAX (UINT64_C(1) << 30)

struct ring_writer {
	uint8_t *base; /* NULL before init and after fini */
	size_t size;
	int fd;
	uint64_t head;	      /* committed up to here */
	uint64_t tail;	      /* read up to here, by the reader's word */
	uint64_t reserved;    /* start of the reservation */
	size_t reserved_size; /* 0: no reservation */
	uint64_t behind;      /* the most that a credit of this lap was late by */
	uint64_t pad;	      /* bytes, at the end of the lap before; 0 at an end */
};

/*
 * Creates the memfd, maps it and seals it against every other writer. size is
 * a power of two, a page at least, RING_SIZE_MAX at most (-EINVAL). The fd is
 * the writer's; it is sent to the reader and may be closed then by
 * close_fd(&w->fd). Returns 0 or a negative errno of the system calls.
 */
must_check int ring_writer_init(struct ring_writer *w, size_t size);
void ring_writer_fini(struct ring_writer *w);

/*
 * The reader has gone: the memory that was shared with it is given back. What
 * is written from here on is taken as before, and read by nobody. Without a
 * reservation. If there is no address space for that, nothing is changed.
 */
void ring_writer_detach(struct ring_writer *w);

/*
 * Room for a record of at most size bytes (header included; rounded up to
 * RING_ALIGN). *ret points into the ring; nothing of it is visible to the
 * reader's word until ring_commit. One reservation at a time. Returns 0,
 * -ENOBUFS if the reader has not read enough yet, -E2BIG if size is more than
 * half the ring.
 */
must_check int ring_reserve(struct ring_writer *w, size_t size, void **ret);

/*
 * Ends the reservation with a record of type whose size is what was used
 * (header included, not more than was reserved): writes the header.
 */
void ring_commit(struct ring_writer *w, uint32_t type, size_t used);

/* Bytes that are free, some of which a record may not be able to use. */
size_t ring_space(const struct ring_writer *w);

/*
 * Bytes of records since the head was at, which is of this lap or the last. A
 * pad that leads over what is not read counts, too.
 */
uint64_t ring_bytes_since(const struct ring_writer *w, uint64_t at);

/* Ends the reservation without a record. */
void ring_abort(struct ring_writer *w);

/* Takes the reader's tail. -EPROTO if it goes back or past the head. */
must_check int ring_credit(struct ring_writer *w, uint64_t tail);

struct ring_reader {
	const uint8_t *base; /* NULL before init and after fini */
	size_t size;
	uint64_t head;
	uint64_t tail;
	uint64_t read;	  /* bytes of records that were given back */
	uint64_t fetched; /* the processor was told to read up to here */
};

/*
 * Maps the ring behind fd, which stays the caller's. Returns 0, -EPROTO if it
 * is not a sealed memfd of a fitting size, or mmap's error.
 */
must_check int ring_reader_init(struct ring_reader *r, int fd);
void ring_reader_fini(struct ring_reader *r);

/* Takes the writer's head. -EPROTO if it goes back or two laps past the tail. */
must_check int ring_advance(struct ring_reader *r, uint64_t head);

/*
 * The next record, in *ret; it lies in the ring and is the reader's until
 * ring_release. Returns 1, 0 if there is none up to the head, -EPROTO if the
 * memory holds nonsense.
 */
must_check int ring_next(struct ring_reader *r, const struct ring_record **ret, size_t *ret_size);

/* Gives back the record that ring_next returned. */
void ring_release(struct ring_reader *r, size_t size);

#endif
