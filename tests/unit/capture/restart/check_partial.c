#include <linux/io_uring.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

#if defined(__x86_64__)

#include "tests/unit/capture/restart/partial.h"

/* The first argument is a descriptor. */
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
	/* Calls that return a part for other reasons, too, or that stay short. */
	{SYS_write, TTY, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_write, ZERO, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_write, REGULAR, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_write, NONE, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_read, ZERO, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_read, PIPE, {0, 4096, 1000}, 300, -1, {0}, false},
	{SYS_getrandom, NONE, {4096, 1000, 0}, 256, -1, {0}, false},
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
	{SYS_recvmmsg, UDP, {0, 4096, 16, 0, 0}, 3, -1, {0}, false},
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
	{SYS_sendfile, UNIX_STREAM, {0, 5, 4096, 1000}, 300, -1, {0}, false},
	{SYS_copy_file_range, REGULAR, {0, 8, 5, 16, 1000, 0}, 300, -1, {0}, false},
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
	{SYS_io_uring_enter, NONE, {0, 2, 1, IORING_ENTER_GETEVENTS}, 2, -1, {0}, false},
	{SYS_io_uring_enter, NONE, {0, 0, 3, IORING_ENTER_GETEVENTS}, 0, -1, {0}, false},
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
	ck_assert_int_eq(partial_changes_only_buffer(&p), calls[_i].alike);
	ck_assert(partial_next(&p, &call));
	check_call(&call, calls[_i].next_nr, next);
	p.done = p.whole;
	ck_assert(!partial_next(&p, &call));
}

TEST(without_an_interrupted_call_there_is_no_part)
{
	struct partial p = after(-1, 300, (const uint64_t[6]){0});

	ck_assert(!partial_find(&p));
}

#endif
