#include "lib/capture/restart/pieces.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include "tests/unit/suite.h"

#if defined(__x86_64__)

#include "tests/unit/capture/restart/partial.h"

static uint8_t bytes[64];

#define MANY 100

FIXTURE(set_up, NULL)

/* The rest is transferred piece by piece. Empty pieces are skipped. */
TESTS(iovecs_are_transferred_piece_by_piece, 5)
{
	struct iovec iov[MANY];
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = MANY};
	const struct {
		long nr, next_nr;
		uint64_t arguments[6], flags;
	} kinds[] = {
		{SYS_writev,
		 SYS_sendto,
		 {(uint32_t)files[UNIX_STREAM], (uintptr_t)iov, MANY},
		 MSG_NOSIGNAL},
		{SYS_writev, SYS_write, {(uint32_t)files[PIPE], (uintptr_t)iov, MANY}, 0},
		{SYS_pwritev2,
		 SYS_write,
		 {(uint32_t)files[PIPE], (uintptr_t)iov, MANY, UINT64_MAX},
		 0},
		{SYS_sendmsg,
		 SYS_sendto,
		 {(uint32_t)files[UNIX_STREAM], (uintptr_t)&m, MSG_MORE},
		 MSG_MORE | MSG_NOSIGNAL},
		{SYS_recvmsg,
		 SYS_recvfrom,
		 {(uint32_t)files[UNIX_STREAM], (uintptr_t)&m, MSG_WAITALL},
		 MSG_WAITALL},
	};
	const uint64_t fd = kinds[_i].arguments[0];
	struct partial_call call;
	struct partial p;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < MANY; i++) {
		iov[i] = (struct iovec){bytes, i % 5};
		sum += i % 5;
	}
	p = after(kinds[_i].nr, 1, kinds[_i].arguments);
	ck_assert(partial_find(&p) && !partial_changes_only_buffer(&p));
	ck_assert_uint_eq(p.whole, sum);
	/* The first non-empty piece has one byte, and is done already. */
	for (unsigned int i = 2; i < MANY; i++) {
		uint64_t left = i % 5, step = i % 2 == 0 && left > 1 ? 1 : left;

		while (left > 0) {
			const uint64_t at = (uintptr_t)bytes + i % 5 - left;

			ck_assert(partial_next(&p, &call));
			check_call(&call, kinds[_i].next_nr,
				   (const uint64_t[6]){fd, at, left, kinds[_i].flags});
			p.done += step;
			left -= step;
			step = left;
		}
	}
	ck_assert_uint_eq(p.done, sum);
	ck_assert(!partial_next(&p, &call));
}

TEST(messages_with_addresses_or_control_data_are_not_resumed)
{
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	const uint64_t receive[6] = {(uint32_t)files[UNIX_STREAM], (uintptr_t)&m, MSG_WAITALL};
	const uint64_t send[6] = {(uint32_t)files[UNIX_STREAM], (uintptr_t)&m};
	struct partial p;

	/* Control messages that come with the rest would have no place. */
	m.msg_control = bytes;
	p = after(SYS_recvmsg, 1, receive);
	ck_assert(!partial_find(&p));
	p = after(SYS_sendmsg, 1, send);
	ck_assert(partial_find(&p));
	m.msg_control = NULL;
	m.msg_name = bytes;
	p = after(SYS_sendmsg, 1, send);
	ck_assert(!partial_find(&p));
	m.msg_name = NULL;
	m.msg_iovlen = 1025;
	p = after(SYS_sendmsg, 1, send);
	ck_assert(!partial_find(&p));
	m.msg_iovlen = 1;
	iov.iov_len = SIZE_MAX;
	p = after(SYS_sendmsg, 1, send);
	ck_assert(!partial_find(&p));
	m.msg_iov = NULL;
	p = after(SYS_sendmsg, 1, send);
	ck_assert(!partial_find(&p));
}

/* With RWF_NOWAIT the program expects partial results. */
TEST(calls_with_rwf_nowait_are_not_resumed)
{
	struct iovec iov = {bytes, sizeof(bytes)};
	uint64_t arguments[6] = {
		(uint32_t)files[PIPE], (uintptr_t)&iov, 1, UINT64_MAX, 0, RWF_NOWAIT};
	struct partial p = after(SYS_pwritev2, 1, arguments);

	ck_assert(!partial_find(&p));
	arguments[5] = 0;
	p = after(SYS_pwritev2, 1, arguments);
	ck_assert(partial_find(&p));
}

#endif
