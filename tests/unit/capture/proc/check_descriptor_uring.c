#include "lib/capture/proc/descriptor.h"

#include "tests/unit/capture/proc/uring.h"
#include "tests/unit/suite.h"

static bool lacks(const struct uring *r, uint64_t wanted)
{
	return descriptor_uring_lacks((uint32_t)getpid(), (uint32_t)r->fd, wanted);
}

TEST(completions_in_the_ring_are_counted)
{
	struct uring r;

	if (!uring_make(&r))
		return;
	ck_assert(lacks(&r, 2));
	uring_nops(&r, 1);
	ck_assert(lacks(&r, 2));
	uring_nops(&r, 1);
	ck_assert(!lacks(&r, 2));
	ck_assert(lacks(&r, 3));
	uring_nops(&r, URING_ENTRIES);
	ck_assert(!lacks(&r, URING_ENTRIES));
	/* The queue holds twice as many completions. When it is full, the answer is no. */
	uring_nops(&r, URING_ENTRIES);
	ck_assert(!lacks(&r, UINT32_MAX));
	uring_end(&r);
}

/* A timeout that ran out ends a wait for several completions. */
TEST(timeouts_end_waits)
{
	const struct __kernel_timespec t = {.tv_nsec = 1};
	const struct io_uring_sqe sqe = {
		.opcode = IORING_OP_TIMEOUT, .addr = (uintptr_t)&t, .len = 1};
	struct uring r;

	if (!uring_make(&r))
		return;
	uring_nops(&r, 2);
	uring_submit(&r, &sqe, 3);
	uring_nops(&r, 1);
	ck_assert(!lacks(&r, 5));
	uring_end(&r);
}

TEST(other_descriptors_give_no_answer)
{
	int pair[2];

	OK(pipe(pair));
	ck_assert(!descriptor_uring_lacks((uint32_t)getpid(), (uint32_t)pair[0], 2));
	ck_assert(!descriptor_uring_lacks((uint32_t)getpid(), UINT32_MAX, 2));
	close(pair[0]);
	close(pair[1]);
}
