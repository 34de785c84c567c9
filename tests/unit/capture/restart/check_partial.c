#include <linux/io_uring.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "lib/base/util.h"
#include "tests/unit/capture/proc/uring.h"
#include "tests/unit/suite.h"

#if defined(__x86_64__)

#include "tests/unit/capture/restart/partial.h"

/* The first argument is a descriptor; the fifth argument of sendfile is not. */
static const struct {
	long nr;
	enum file file;
	uint64_t arguments[6];
	long result;
	/* The call for the rest; 0: the call is not resumed. */
	long next_nr;
	uint64_t next[6];
	bool alike;
} calls[] = {
	{SYS_write, PIPE, {0, 4096, 1000}, 300, SYS_write, {0, 4396, 700}, true},
	/* A complete result, no byte, an error: there is no rest. */
	{SYS_write, PIPE, {0, 4096, 1000}, 1000, -1, {0}, false},
	{SYS_write, PIPE, {0, 4096, 1000}, 0, -1, {0}, false},
	{SYS_write, PIPE, {0, 4096, 1000}, -EINTR, -1, {0}, false},
	{SYS_write, PIPE, {0, 4096, 1000}, -512, -1, {0}, false},
	/* A call for more bytes than the kernel moves at once is complete. */
	{SYS_write, PIPE, {0, 4096, 0x80000000}, 0x7ffff000, -1, {0}, false},
	{SYS_write,
	 UNIX_STREAM,
	 {0, 4096, 1000},
	 300,
	 SYS_sendto,
	 {0, 4396, 700, MSG_NOSIGNAL},
	 false},
	/* Calls that return a part for other reasons, too. */
	{SYS_write, REGULAR, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_write, NONE, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_read, ZERO, {0, 4096, 1000}, 300, SYS_read, {0, 4396, 700}, true},
	{SYS_read, FULL, {0, 4096, 1000}, 300, SYS_read, {0, 4396, 700}, true},
	{SYS_read, PIPE, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_pread64, ZERO, {0, 4096, 1000, 5}, 300, SYS_pread64, {0, 4396, 700, 5}, true},
	{SYS_pread64, REGULAR, {0, 4096, 1000, 5}, 300, -1, {0}, false},
	{SYS_write, RANDOM, {0, 4096, 1000}, 300, SYS_write, {0, 4396, 700}, true},
	{SYS_pwrite64, RANDOM, {0, 4096, 1000, 5}, 300, SYS_pwrite64, {0, 4396, 700, 5}, true},
	{SYS_pwrite64, PIPE, {0, 4096, 1000, 5}, 300, -1, {0}, false},
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
	 {0, 4096, 1000, MSG_NOSIGNAL | MSG_DONTROUTE},
	 1,
	 SYS_sendto,
	 {0, 4097, 999, MSG_NOSIGNAL | MSG_DONTROUTE},
	 true},
	/* The kernel acknowledges each zero-copy call by its number. */
	{SYS_sendto,
	 UNIX_STREAM,
	 {0, 4096, 1000, MSG_NOSIGNAL | MSG_ZEROCOPY},
	 1,
	 SYS_sendto,
	 {0, 4097, 999, MSG_NOSIGNAL},
	 false},
	{SYS_sendto, UNIX_STREAM, {0, 4096, 1000, MSG_DONTWAIT}, 1, -1, {0}, false},
	{SYS_sendto, UNIX_STREAM, {0, 4096, 1000, 0, 4096}, 1, -1, {0}, false},
	{SYS_sendto, UDP, {0, 4096, 1000}, 1, -1, {0}, false},
	{SYS_recvfrom,
	 UNIX_STREAM,
	 {0, 4096, 1000, MSG_WAITALL},
	 1,
	 SYS_recvfrom,
	 {0, 4097, 999, MSG_WAITALL},
	 true},
	/* Without MSG_WAITALL the call returns the bytes that are available. */
	{SYS_recvfrom, UNIX_STREAM, {0, 4096, 1000}, 1, -1, {0}, false},
	{SYS_recvfrom, UNIX_STREAM, {0, 4096, 1000, MSG_WAITALL | MSG_PEEK}, 1, -1, {0}, false},
	{SYS_recvmmsg,
	 UDP,
	 {0, 4096, 16, 0, 0},
	 3,
	 SYS_recvmmsg,
	 {0, 4096 + 3 * sizeof(struct mmsghdr), 13, 0, 0},
	 true},
	{SYS_recvmmsg, UDP, {0, 4096, 16, MSG_WAITFORONE, 0}, 3, -1, {0}, false},
	{SYS_sendmmsg,
	 UDP,
	 {0, 4096, 16, MSG_NOSIGNAL},
	 3,
	 SYS_sendmmsg,
	 {0, 4096 + 3 * sizeof(struct mmsghdr), 13, MSG_NOSIGNAL},
	 true},
	/* The last message may itself have been sent in part. */
	{SYS_sendmmsg, UNIX_STREAM, {0, 4096, 16}, 3, -1, {0}, false},
	{SYS_sendmmsg, UDP, {0, 4096, 16, MSG_DONTWAIT}, 3, -1, {0}, false},
	{SYS_sendfile, UNIX_STREAM, {0, 5, 4096, 1000}, 300, SYS_sendfile, {0, 5, 4096, 700}, true},
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
	{SYS_io_pgetevents,
	 NONE,
	 {0, 8, 10, 4096, 64, 128},
	 3,
	 SYS_io_pgetevents,
	 {0, 5, 7, 4096 + 3 * 32, 64, 128},
	 true},
	/* The call returned as many events as it waited for. */
	{SYS_io_getevents, NONE, {0, 3, 10, 4096, 0}, 3, -1, {0}, false},
	{SYS_tee, PIPE, {0, 5, 1000, 0}, 300, -1, {0}, false},
	{SYS_close, PIPE, {0}, 1, -1, {0}, false},
};

FIXTURE(set_up, NULL)

TESTS(the_next_call_requests_the_rest, array_size(calls))
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

TEST(the_rest_of_getrandom_is_requested)
{
	struct partial p = after(SYS_getrandom, 256, (const uint64_t[6]){4096, 1000, 0});
	struct partial_call call;

	ck_assert(partial_find(&p) && partial_is_alike(&p));
	ck_assert(partial_next(&p, &call));
	check_call(&call, SYS_getrandom, (const uint64_t[6]){4352, 744, 0});
}

/* Entries that were submitted must not be submitted again. */
TEST(a_wait_of_io_uring_submits_nothing_again)
{
	const uint64_t enter[6] = {7, 2, 1, IORING_ENTER_GETEVENTS, 0, 8};
	const uint64_t wait[6] = {7, 0, 1, IORING_ENTER_GETEVENTS, 0, 8};
	const uint64_t no_wait[6] = {7, 2, 0, IORING_ENTER_GETEVENTS};
	const uint64_t no_events[6] = {7, 2, 1, 0};
	/* IORING_ENTER_EXT_ARG_REG: a registered timeout cannot be read. */
	const uint64_t registered[6] = {7, 2, 1, IORING_ENTER_GETEVENTS | 1 << 6};
	struct partial p = after(SYS_io_uring_enter, 2, enter);
	struct partial_call call;

	ck_assert(partial_find(&p) && partial_is_alike(&p));
	ck_assert(partial_next(&p, &call));
	ck_assert(!call.counts);
	check_call(&call, SYS_io_uring_enter, wait);
	/* The second submission failed, so the wait was not reached. */
	p = after(SYS_io_uring_enter, 1, enter);
	ck_assert(!partial_find(&p));
	p = after(SYS_io_uring_enter, 2, no_wait);
	ck_assert(!partial_find(&p));
	p = after(SYS_io_uring_enter, 2, no_events);
	ck_assert(!partial_find(&p));
	p = after(SYS_io_uring_enter, 2, registered);
	ck_assert(!partial_find(&p));
}

/* A wait for several completions that got some of them has the result 0. */
TEST(a_wait_for_several_completions_is_resumed)
{
	struct uring ring;
	struct partial_call call;
	struct partial p;
	uint32_t min_wait[6] = {0};
	uint64_t wait[6] = {0, 0, 3, IORING_ENTER_GETEVENTS};

	if (!uring_make(&ring))
		return;
	wait[0] = (uint32_t)ring.fd;
	uring_nops(&ring, 2);
	p = after(SYS_io_uring_enter, 0, wait);
	ck_assert(partial_find(&p) && partial_is_alike(&p));
	ck_assert(partial_next(&p, &call) && !call.counts);
	check_call(&call, SYS_io_uring_enter, wait);
	/* With a timeout, and with a time after which fewer completions are enough. */
	wait[3] = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
	wait[4] = (uintptr_t)min_wait;
	p = after(SYS_io_uring_enter, 0, wait);
	ck_assert(partial_find(&p));
	min_wait[3] = 1;
	ck_assert(!partial_find(&p));
	/* The ring is given by a registered number. */
	wait[3] = IORING_ENTER_GETEVENTS | 1 << 4;
	p = after(SYS_io_uring_enter, 0, wait);
	ck_assert(!partial_find(&p));
	/* The call submits entries and waits for one completion only. */
	wait[3] = IORING_ENTER_GETEVENTS;
	wait[1] = 2;
	p = after(SYS_io_uring_enter, 2, wait);
	ck_assert(partial_find(&p));
	wait[1] = 0;
	wait[2] = 1;
	p = after(SYS_io_uring_enter, 0, wait);
	ck_assert(!partial_find(&p));
	/* All completions are available, either before the call is resumed or meanwhile. */
	wait[2] = 3;
	p = after(SYS_io_uring_enter, 0, wait);
	ck_assert(partial_find(&p));
	uring_nops(&ring, 1);
	ck_assert(!partial_next(&p, &call));
	ck_assert(!partial_find(&p));
	uring_end(&ring);
}

/* The remaining time of recvmmsg(2) is in memory. If it is 0, the timeout has ended the call. */
TEST(recvmmsg_is_resumed_while_time_remains)
{
	struct timespec left = {.tv_nsec = 1};
	const uint64_t arguments[6] = {(uint32_t)files[UDP], 4096, 16, 0, (uintptr_t)&left};
	struct partial p = after(SYS_recvmmsg, 3, arguments);
	struct partial_call call;

	ck_assert(partial_find(&p) && partial_next(&p, &call));
	left.tv_nsec = 0;
	ck_assert(!partial_next(&p, &call));
	ck_assert(!partial_find(&p));
}

TEST(without_an_interrupted_call_there_is_no_part)
{
	struct partial p = after(-1, 300, (const uint64_t[6]){0});

	ck_assert(!partial_find(&p));
}

#endif
