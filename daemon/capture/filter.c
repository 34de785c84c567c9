#include "daemon/capture/filter.h"

#include <capture_filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

int filter_install(bool kill)
{
	struct sock_fprog program = {
		.len = kill ? array_size(filter_that_kills) : array_size(filter_that_fails),
		.filter = kill ? filter_that_kills : filter_that_fails,
	};

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
