/*
 * What the calls of cap_whole.c have in common; they stand in cap_whole_sent.h,
 * cap_whole_received.h and cap_whole_waits.h.
 */
#ifndef TESTS_TARGETS_CAP_WHOLE_H
#define TESTS_TARGETS_CAP_WHOLE_H

#include <linux/aio_abi.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "ends.h"

#define WHOLE	   (1u << 20)
#define TTY_BYTES  (32u << 10)
#define PIECES	   7
#define MESSAGES   16
#define PATTERN	   251 /* prime, so that it does not fit any buffer */
#define RING_SPARE 8

struct ring {
	int fd;
	unsigned int *sq_tail, *sq_mask, *sq_array;
	unsigned int *cq_head, *cq_tail;
	struct io_uring_sqe *sqes;
};

struct work {
	const struct kind *kind;
	int fd, peer; /* of the calls, and of the other thread */
	int file, splice_to; /* what else the calls need */
	uint8_t *bytes;
	uint64_t sent, seen; /* bytes or messages, by each side */
	uint64_t calls;
	struct ring ring;
	aio_context_t aio;
	atomic_int tid;
	atomic_ulong shorter, wrong, whole;
};

struct kind {
	const char *name;
	void (*make)(struct work *);
	/* What was asked for, less what came; -1: an error. */
	ssize_t (*call)(struct work *);
	/* The other thread's, again and again; NULL: there is none. */
	void (*other)(struct work *);
	bool may_be_short; /* docs/SAFETY.md, Calls that stay short */
};

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at % PATTERN);
}

static void fill(uint8_t *to, uint64_t at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = pattern(at + i);
}

static void compare(struct work *w, const uint8_t *got, uint64_t at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (got[i] != pattern(at + i)) {
			atomic_fetch_add(&w->wrong, 1);
			return;
		}
}

/* What is sent begins where the last one ended. */
static uint8_t *next_bytes(struct work *w)
{
	return w->bytes + w->sent % PATTERN;
}

static ssize_t sent(struct work *w, ssize_t n, size_t whole)
{
	if (n < 0)
		return -1;
	w->sent += (uint64_t)n;
	return (ssize_t)whole - n;
}

/* Reads what is there, which is less than what is sent at once. */
static void drain(struct work *w)
{
	uint8_t got[20000];
	ssize_t n = read(w->peer, got, sizeof(got));

	need(n > 0 || errno == EINTR);
	compare(w, got, w->seen, n < 0 ? 0 : (size_t)n);
	w->seen += n < 0 ? 0 : (uint64_t)n;
}

#endif
