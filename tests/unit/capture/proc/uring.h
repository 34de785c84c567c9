/* Makes an io_uring with entries in its completion queue. */
#ifndef TESTS_UNIT_CAPTURE_PROC_URING_H
#define TESTS_UNIT_CAPTURE_PROC_URING_H

#include <linux/io_uring.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define URING_ENTRIES 8

struct uring {
	int fd;
	unsigned int *tail, *mask, *array;
	struct io_uring_sqe *sqes;
};

static inline void *uring_map(const struct uring *r, size_t size, off_t at)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, at);

	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

/* Returns false if the kernel refuses to make an io_uring, as in many containers. */
static inline bool uring_make(struct uring *r)
{
	struct io_uring_params p;
	uint8_t *ring;

	memset(&p, 0, sizeof(p));
	r->fd = (int)syscall(SYS_io_uring_setup, URING_ENTRIES, &p);
	if (r->fd < 0)
		return false;
	ring = uring_map(r, p.sq_off.array + p.sq_entries * sizeof(*r->array), IORING_OFF_SQ_RING);
	r->tail = (unsigned int *)(void *)(ring + p.sq_off.tail);
	r->mask = (unsigned int *)(void *)(ring + p.sq_off.ring_mask);
	r->array = (unsigned int *)(void *)(ring + p.sq_off.array);
	r->sqes = uring_map(r, p.sq_entries * sizeof(*r->sqes), IORING_OFF_SQES);
	return true;
}

/* Submits an entry, and waits until the queue has `wait` completions. */
static inline void uring_submit(struct uring *r, const struct io_uring_sqe *sqe, unsigned int wait)
{
	const unsigned int at = *r->tail & *r->mask;

	r->array[at] = at;
	r->sqes[at] = *sqe;
	__atomic_store_n(r->tail, *r->tail + 1, __ATOMIC_RELEASE);
	ck_assert_int_eq(
		syscall(SYS_io_uring_enter, r->fd, 1, wait, IORING_ENTER_GETEVENTS, NULL, 0), 1);
}

static inline void uring_nops(struct uring *r, unsigned int n)
{
	const struct io_uring_sqe sqe = {.opcode = IORING_OP_NOP};

	for (unsigned int i = 0; i < n; i++)
		uring_submit(r, &sqe, 0);
}

static inline void uring_end(struct uring *r)
{
	close(r->fd);
}

#endif
