/*
 * A ring buffer between two processes: capture writes records of samples to it, and unwind reads
 * them. It is a memfd that the writer maps writable and the reader maps read-only; seals forbid
 * every other writer.
 *
 * The head is the position up to which records have been written. The tail is the position up to
 * which they have been read. The writer sends the head in a message, and the reader sends the tail
 * in a message, a credit. The receiver checks the position. So the writer never reads memory that
 * the reader could have changed. In a page behind the records the writer also keeps the head of the
 * last commit: there the reader finds what a writer that was killed had not announced.
 *
 * Positions are byte counts that only grow; the offset in the memory is the position modulo the
 * size. A lap is one pass through the memory. A record is never split at the end of a lap. A pad
 * record fills bytes that the reader skips. The writer writes one in three cases:
 * - The rest of the lap is too short for the next record. The pad fills this rest.
 * - The reader has read the records at the start of the memory. The writer then ends the lap early
 *   and writes there again, so that fewer pages are in use. The pad fills the rest of the lap.
 * - After an early end the writer reaches records of the previous lap that the reader has not read.
 *   The pad skips these records; its header is before them, so they stay intact. The next record is
 *   written behind the early end, where memory is unused.
 * In a ring of 4096 bytes, for example, records are written up to offset 2400, and read up to 1600.
 * The writer ends the lap early, by a pad from 2400 to 4096, and writes records from 0 to 1560. The
 * next record would reach the unread ones from 1600 on. So the writer makes a pad from 1560 to
 * 2408, and writes the record at 2408, behind the header (8 bytes) of the first pad.
 *
 * The bytes of pads count in positions. So the head may be up to two laps ahead of the tail.
 *
 * Trap for the reader: the writer may be hostile and can change the memory at any time. Read each
 * field once, and check it. ring_next() returns -EPROTO for a record with an invalid size. The
 * seals rule out SIGBUS, because the writer cannot shrink the file.
 */
#ifndef LIB_BASE_RING_H
#define LIB_BASE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

#define RING_ALIGN 8

/* The header of every record. */
struct ring_record {
	uint32_t size; /* bytes with this header; a multiple of RING_ALIGN */
	uint32_t type; /* 0: a pad record; other types are the caller's */
};

/* 1 GiB, so that arithmetic on sizes cannot overflow. */
#define RING_SIZE_MAX (UINT64_C(1) << 30)

struct ring_writer {
	uint8_t *base; /* NULL before init and after fini */
	size_t size;
	int fd;
	uint64_t head;	      /* end of the committed records */
	uint64_t tail;	      /* read up to here, by the last credit */
	uint64_t reserved;    /* position of the reserved record */
	size_t reserved_size; /* bytes; 0: nothing is reserved */
	uint64_t behind;      /* the most unread bytes at the arrival of a credit in this lap */
	uint64_t pad;	      /* bytes of the pad record that ended the last lap; 0: none */
};

/*
 * Creates, maps and seals the memfd. size: in bytes, a power of two from one page to RING_SIZE_MAX,
 * to which the page of the head is added.
 * Once w->fd has been sent to the reader, the caller may close it with close_fd(&w->fd). Returns 0,
 * -EINVAL for a wrong size, or the error of a system call.
 */
must_check int ring_writer_init(struct ring_writer *w, size_t size);
/* Unmaps the memory and closes the descriptor. w may be NULL, or finished already. */
void ring_writer_fini(struct ring_writer *w);

/*
 * Call it after the reader has died, and without a reservation. Replaces the shared memory by
 * private memory, so that the kernel can free the shared pages, and closes w->fd. Records can still
 * be written until the ring is full, but no process reads them. If mmap(2) fails, the writer keeps
 * the shared memory.
 */
void ring_writer_detach(struct ring_writer *w);

/*
 * Reserves room for a record of at most size bytes, header included. *ret points to the header of
 * the record in the ring. The caller writes only what follows the header; ring_commit() writes the
 * header. The reader may see the record from ring_commit() on, before a message with the new head.
 * Each reservation ends with ring_commit() or ring_abort() before the next one. Returns 0, -ENOBUFS
 * if the ring is full, or -E2BIG if size exceeds half of the ring.
 */
must_check int ring_reserve(struct ring_writer *w, size_t size, void **ret);

/*
 * Commits the reserved record: writes its header. used: bytes of the record with its header, at
 * most what was reserved. type: not 0.
 */
void ring_commit(struct ring_writer *w, uint32_t type, size_t used);

/*
 * Returns the free bytes, including those that pads will take. Only ring_reserve() tells whether a
 * record fits.
 */
size_t ring_space(const struct ring_writer *w);

/*
 * Returns the bytes of the records committed after position at, which is an earlier value of head
 * in this lap or the previous one. The bytes of a pad record that covers unread records count;
 * those of a pad record that ends a lap do not.
 */
uint64_t ring_bytes_since(const struct ring_writer *w, uint64_t at);

/* Gives up the reservation. The room is free again. */
void ring_abort(struct ring_writer *w);

/* Sets the tail that came in a credit. Returns 0; -EPROTO if it goes back or passes the head. */
must_check int ring_credit(struct ring_writer *w, uint64_t tail);

struct ring_reader {
	const uint8_t *base; /* NULL before init and after fini */
	size_t size;
	uint64_t head;	  /* end of the committed records, by the last ring_advance() */
	uint64_t tail;	  /* end of the released records: the value of a credit */
	uint64_t read;	  /* bytes of released records, without pads */
	uint64_t fetched; /* position up to which memory has been prefetched */
};

/*
 * Maps the ring. fd stays the caller's. Returns 0, -EPROTO if fd is no sealed memfd of a valid
 * size, or the error of fstat(2) or mmap(2).
 */
must_check int ring_reader_init(struct ring_reader *r, int fd);
/* Unmaps the memory. r may be NULL, or finished already. */
void ring_reader_fini(struct ring_reader *r);

/*
 * Sets the head that came in a message. Returns 0; -EPROTO if it goes back, is more than two laps
 * ahead of the tail, or is no multiple of RING_ALIGN.
 */
must_check int ring_advance(struct ring_reader *r, uint64_t head);

/*
 * Sets the head of the last commit, which the ring's memory has: the writer may have announced
 * less. Returns as ring_advance().
 */
must_check int ring_advance_to_end(struct ring_reader *r);

/*
 * Finds the next record. *ret points into the ring, and is valid until ring_release(). *ret_size is
 * the checked size of the record: use it instead of (*ret)->size, which the writer may change.
 * Without ring_release() the next call finds the same record. Returns 1; 0 if there is no record
 * before the head; or -EPROTO if a size is invalid.
 */
must_check int ring_next(struct ring_reader *r, const struct ring_record **ret, size_t *ret_size);

/* Releases the record of the last ring_next(). size: its *ret_size. */
void ring_release(struct ring_reader *r, size_t size);

#endif
