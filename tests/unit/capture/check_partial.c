#include "lib/capture/partial.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

/* Calls of 64-bit x86; elsewhere none is gone on with. */
#if defined(__x86_64__)

/* The process looked at is this one; the files that calls are made on. */
enum file { PIPE, UNIX_STREAM, UDP, ZERO, REGULAR, NONE, FILES };

static int files[FILES];

static void set_up(void)
{
	int pair[2];

	ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
	files[PIPE] = pair[1];
	files[UNIX_STREAM] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	files[UDP] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	files[ZERO] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	files[REGULAR] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	files[NONE] = -1;
	for (int i = 0; i < NONE; i++)
		ck_assert_int_ge(files[i], 0);
}

static struct partial after(long nr, long result, const uint64_t arguments[6])
{
	struct partial p = {.tid = (uint32_t)getpid(), .pagemap_fd = -1};

	p.regs.orig_rax = (unsigned long long)nr;
	p.regs.rax = (unsigned long long)result;
	p.regs.rdi = arguments[0];
	p.regs.rsi = arguments[1];
	p.regs.rdx = arguments[2];
	p.regs.r10 = arguments[3];
	p.regs.r8 = arguments[4];
	p.regs.r9 = arguments[5];
	return p;
}

static void check_call(const struct partial_call *call, long nr,
		       const uint64_t arguments[6])
{
	ck_assert_int_eq(call->nr, nr);
	for (unsigned int i = 0; i < ARCH_ARGUMENTS; i++)
		ck_assert_msg(call->arguments[i] == arguments[i],
			      "argument %u of call %ld is 0x%llx, not 0x%llx",
			      i, nr, (unsigned long long)call->arguments[i],
			      (unsigned long long)arguments[i]);
}

/* The first argument is a descriptor; the fifth of sendfile's is none. */
static const struct {
	long nr;
	enum file file;
	uint64_t arguments[6];
	long result;
	/* The rest; 0: none is to be run. */
	long next_nr;
	uint64_t next[6];
	bool alike;
} calls[] = {
	{SYS_write,
	 PIPE,
	 {0, 4096, 1000},
	 300,
	 SYS_write,
	 {0, 4396, 700},
	 true},
	/* All of it, nothing, an error: no rest. */
	{SYS_write, PIPE, {0, 4096, 1000}, 1000, -1, {0}, false},
	{SYS_write, PIPE, {0, 4096, 1000}, 0, -1, {0}, false},
	{SYS_write, PIPE, {0, 4096, 1000}, -EINTR, -1, {0}, false},
	{SYS_write, PIPE, {0, 4096, 1000}, -512, -1, {0}, false},
	/* More than the kernel takes at once is no part. */
	{SYS_write, PIPE, {0, 4096, 0x80000000}, 0x7ffff000, -1, {0}, false},
	{SYS_write,
	 UNIX_STREAM,
	 {0, 4096, 1000},
	 300,
	 SYS_sendto,
	 {0, 4396, 700, MSG_NOSIGNAL},
	 false},
	/* A part of these has other reasons. */
	{SYS_write, REGULAR, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_write, NONE, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_read, ZERO, {0, 4096, 1000}, 300, SYS_read, {0, 4396, 700}, true},
	{SYS_read, PIPE, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_sendto,
	 UNIX_STREAM,
	 {0, 4096, 1000, MSG_MORE},
	 1,
	 SYS_sendto,
	 {0, 4097, 999, MSG_MORE | MSG_NOSIGNAL},
	 false},
	{SYS_sendto,
	 UNIX_STREAM,
	 {0, 4096, 1000, MSG_NOSIGNAL},
	 1,
	 SYS_sendto,
	 {0, 4097, 999, MSG_NOSIGNAL},
	 true},
	{SYS_sendto,
	 UNIX_STREAM,
	 {0, 4096, 1000, MSG_DONTWAIT},
	 1,
	 -1,
	 {0},
	 false},
	{SYS_sendto, UNIX_STREAM, {0, 4096, 1000, 0, 4096}, 1, -1, {0}, false},
	{SYS_sendto, UDP, {0, 4096, 1000}, 1, -1, {0}, false},
	{SYS_recvfrom,
	 UNIX_STREAM,
	 {0, 4096, 1000, MSG_WAITALL},
	 1,
	 SYS_recvfrom,
	 {0, 4097, 999, MSG_WAITALL},
	 true},
	/* It gives what is there. */
	{SYS_recvfrom, UNIX_STREAM, {0, 4096, 1000}, 1, -1, {0}, false},
	{SYS_recvfrom,
	 UNIX_STREAM,
	 {0, 4096, 1000, MSG_WAITALL | MSG_PEEK},
	 1,
	 -1,
	 {0},
	 false},
	{SYS_recvmmsg,
	 UDP,
	 {0, 4096, 16, 0, 0},
	 3,
	 SYS_recvmmsg,
	 {0, 4096 + 3 * sizeof(struct mmsghdr), 13, 0, 0},
	 true},
	{SYS_recvmmsg,
	 UDP,
	 {0, 4096, 16, MSG_WAITFORONE, 0},
	 3,
	 -1,
	 {0},
	 false},
	{SYS_sendmmsg,
	 UDP,
	 {0, 4096, 16, MSG_NOSIGNAL},
	 3,
	 SYS_sendmmsg,
	 {0, 4096 + 3 * sizeof(struct mmsghdr), 13, MSG_NOSIGNAL},
	 true},
	/* The last of them may be a part itself. */
	{SYS_sendmmsg, UNIX_STREAM, {0, 4096, 16}, 3, -1, {0}, false},
	{SYS_sendmmsg, UDP, {0, 4096, 16, MSG_DONTWAIT}, 3, -1, {0}, false},
	{SYS_sendfile,
	 UNIX_STREAM,
	 {0, 5, 4096, 1000},
	 300,
	 SYS_sendfile,
	 {0, 5, 4096, 700},
	 true},
	{SYS_sendfile, PIPE, {0, 5, 4096, 1000}, 300, -1, {0}, false},
	{SYS_copy_file_range,
	 REGULAR,
	 {0, 8, 5, 16, 1000, 0},
	 300,
	 SYS_copy_file_range,
	 {0, 8, 5, 16, 700, 0},
	 true},
	{SYS_splice,
	 PIPE,
	 {0, 0, 5, 0, 1000, SPLICE_F_MORE},
	 300,
	 SYS_splice,
	 {0, 0, 5, 0, 700, SPLICE_F_MORE | SPLICE_F_NONBLOCK},
	 false},
	{SYS_splice, UNIX_STREAM, {0, 0, 5, 0, 1000, 0}, 300, -1, {0}, false},
	{SYS_io_getevents,
	 NONE,
	 {0, 8, 10, 4096, 0},
	 3,
	 SYS_io_getevents,
	 {0, 5, 7, 4096 + 3 * 32, 0},
	 true},
	/* Its time may be over. */
	{SYS_io_getevents, NONE, {0, 8, 10, 4096, 4096}, 3, -1, {0}, false},
	{SYS_tee, PIPE, {0, 5, 1000, 0}, 300, -1, {0}, false},
	{SYS_close, PIPE, {0}, 1, -1, {0}, false},
};

START_TEST(what_is_left)
{
	uint64_t first[6], next[6];
	struct partial_call call;
	struct partial p;

	memcpy(first, calls[_i].arguments, sizeof(first));
	memcpy(next, calls[_i].next, sizeof(next));
	first[0] = next[0] = (uint32_t)files[calls[_i].file];
	p = after(calls[_i].nr, calls[_i].result, first);
	if (calls[_i].next_nr < 0) {
		ck_assert(!partial_find(&p));
		return;
	}
	ck_assert(partial_find(&p));
	ck_assert_uint_eq(p.done, (uint64_t)calls[_i].result);
	ck_assert_int_eq(partial_is_alike(&p), calls[_i].alike);
	ck_assert(partial_next(&p, &call));
	ck_assert(call.counts);
	check_call(&call, calls[_i].next_nr, next);
	p.done = p.whole;
	ck_assert(!partial_next(&p, &call));
}
END_TEST

START_TEST(bytes_of_getrandom)
{
	struct partial p =
		after(SYS_getrandom, 256, (const uint64_t[6]){4096, 1000, 0});
	struct partial_call call;

	ck_assert(partial_find(&p) && partial_is_alike(&p));
	ck_assert(partial_next(&p, &call));
	check_call(&call, SYS_getrandom, (const uint64_t[6]){4352, 744, 0});
}
END_TEST

/* What it has submitted must not be submitted again. */
START_TEST(waits_of_io_uring)
{
	const uint64_t enter[6] = {7, 2, 1, IORING_ENTER_GETEVENTS, 0, 8};
	const uint64_t wait[6] = {7, 0, 1, IORING_ENTER_GETEVENTS, 0, 8};
	const uint64_t no_wait[6] = {7, 2, 0, IORING_ENTER_GETEVENTS};
	const uint64_t no_events[6] = {7, 2, 1, 0};
	struct partial p = after(SYS_io_uring_enter, 2, enter);
	struct partial_call call;

	ck_assert(partial_find(&p) && partial_is_alike(&p));
	ck_assert(partial_next(&p, &call));
	ck_assert(!call.counts);
	check_call(&call, SYS_io_uring_enter, wait);
	/* An error of the second: the wait was not reached. */
	p = after(SYS_io_uring_enter, 1, enter);
	ck_assert(!partial_find(&p));
	p = after(SYS_io_uring_enter, 2, no_wait);
	ck_assert(!partial_find(&p));
	p = after(SYS_io_uring_enter, 2, no_events);
	ck_assert(!partial_find(&p));
}
END_TEST

static uint8_t bytes[64];

#define MANY 100

/* Piece by piece, the empty ones left out. */
START_TEST(pieces)
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
		{SYS_writev,
		 SYS_write,
		 {(uint32_t)files[PIPE], (uintptr_t)iov, MANY},
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
	ck_assert(partial_find(&p) && !partial_is_alike(&p));
	ck_assert_uint_eq(p.whole, sum);
	/* The first piece that is not empty has one byte: it is done. */
	for (unsigned int i = 2; i < MANY; i++) {
		uint64_t left = i % 5, step = i % 2 == 0 && left > 1 ? 1 : left;

		while (left > 0) {
			const uint64_t at = (uintptr_t)bytes + i % 5 - left;

			ck_assert(partial_next(&p, &call) && call.counts);
			check_call(&call, kinds[_i].next_nr,
				   (const uint64_t[6]){fd, at, left,
						       kinds[_i].flags});
			p.done += step;
			left -= step;
			step = left;
		}
	}
	ck_assert_uint_eq(p.done, sum);
	ck_assert(!partial_next(&p, &call));
}
END_TEST

START_TEST(messages_that_are_left_alone)
{
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	const uint64_t receive[6] = {(uint32_t)files[UNIX_STREAM],
				     (uintptr_t)&m, MSG_WAITALL};
	const uint64_t send[6] = {(uint32_t)files[UNIX_STREAM], (uintptr_t)&m};
	struct partial p;

	/* Control messages of the rest would have no place. */
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
END_TEST

/* What is left of its time is in memory; nothing: that has ended it. */
START_TEST(time_of_recvmmsg)
{
	struct timespec left = {.tv_nsec = 1};
	const uint64_t arguments[6] = {(uint32_t)files[UDP], 4096, 16, 0,
				       (uintptr_t)&left};
	struct partial p = after(SYS_recvmmsg, 3, arguments);
	struct partial_call call;

	ck_assert(partial_find(&p) && partial_next(&p, &call));
	left.tv_nsec = 0;
	ck_assert(!partial_next(&p, &call));
	ck_assert(!partial_find(&p));
}
END_TEST

START_TEST(no_call)
{
	struct partial p = after(-1, 300, (const uint64_t[6]){0});

	ck_assert(!partial_find(&p));
}
END_TEST

static void add_tests(TCase *tc)
{
	tcase_add_checked_fixture(tc, set_up, NULL);
	tcase_add_loop_test(tc, what_is_left, 0,
			    sizeof(calls) / sizeof(calls[0]));
	tcase_add_test(tc, bytes_of_getrandom);
	tcase_add_test(tc, waits_of_io_uring);
	tcase_add_loop_test(tc, pieces, 0, 4);
	tcase_add_test(tc, messages_that_are_left_alone);
	tcase_add_test(tc, time_of_recvmmsg);
	tcase_add_test(tc, no_call);
}

#else

static void add_tests(TCase *tc)
{
	(void)tc;
}

#endif

Suite *suite(void)
{
	Suite *s = suite_create("partial");
	TCase *tc = tcase_create("parts");

	add_tests(tc);
	suite_add_tcase(s, tc);
	return s;
}
