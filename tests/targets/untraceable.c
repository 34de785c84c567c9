/*
 * Executes its arguments where ptrace(2) is refused, as by a container's
 * filter.
 *
 * Usage: untraceable PROGRAM [ARGUMENT]...
 */
#include "filter.h"

#include <errno.h>

int main(int argc, char **argv)
{
	const struct sock_filter filter[] = {
		FILTER_LOAD_NUMBER,
		FILTER_CALL(SYS_ptrace, SECCOMP_RET_ERRNO | EPERM),
		FILTER_ALLOW,
	};

	if (argc < 2 ||
	    !filter_install(filter, sizeof(filter) / sizeof(filter[0]), 0))
		return 2;
	(void)execv(argv[1], argv + 1);
	return 2;
}
