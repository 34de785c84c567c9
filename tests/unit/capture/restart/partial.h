/*
 * Calls that returned a part, on files of the test's process. For 64-bit x86 only: on other
 * processors no call is resumed.
 */
#ifndef TESTS_UNIT_CAPTURE_RESTART_PARTIAL_H
#define TESTS_UNIT_CAPTURE_RESTART_PARTIAL_H

#include "lib/capture/restart/partial.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/suite.h"

/* The files of the test's process on which calls are made. */
enum file { PIPE, UNIX_STREAM, UDP, TTY, ZERO, REGULAR, NONE, FILES };

static int files[FILES];

static inline void set_up(void)
{
	int pair[2];

	OK(pipe2(pair, O_CLOEXEC));
	files[PIPE] = pair[1];
	files[UNIX_STREAM] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	files[UDP] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	files[TTY] = open("/dev/ptmx", O_RDWR | O_CLOEXEC | O_NOCTTY);
	files[ZERO] = open("/dev/zero", O_RDWR | O_CLOEXEC);
	files[REGULAR] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	files[NONE] = -1;
	for (int i = 0; i < NONE; i++)
		ck_assert_int_ge(files[i], 0);
}

/* Returns the state after call nr with these arguments has returned result. */
static inline struct partial after(long nr, long result, const uint64_t arguments[6])
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

/* Checks that *call is call nr with these arguments. */
static inline void check_call(const struct partial_call *call, long nr, const uint64_t arguments[6])
{
	ck_assert_int_eq(call->nr, nr);
	for (unsigned int i = 0; i < ARCH_ARGUMENTS; i++)
		ck_assert_msg(call->arguments[i] == arguments[i],
			      "argument %u of call %ld is 0x%llx, not 0x%llx", i, nr,
			      (unsigned long long)call->arguments[i],
			      (unsigned long long)arguments[i]);
}

#endif
