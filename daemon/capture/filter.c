#include "daemon/capture/filter.h"

#include <capture_filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROGRAM(table) ((struct sock_fprog){.len = array_size(table), .filter = (table)})

static struct sock_fprog program_of(bool uses_perf, bool kill)
{
	if (uses_perf)
		return kill ? PROGRAM(perf_filter_that_kills) : PROGRAM(perf_filter_that_fails);
	return kill ? PROGRAM(filter_that_kills) : PROGRAM(filter_that_fails);
}

int filter_install(bool uses_perf, bool kill)
{
	const struct sock_fprog program = program_of(uses_perf, kill);

	/*
	 * SPEC_ALLOW: before Linux 5.16 a filter switches on a mitigation of speculation, which
	 * slows the process down. The mitigation is for processes that run untrusted code, such as
	 * scripts; capture runs none.
	 */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		       &program) < 0
		       ? -errno
		       : 0;
}
