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
	if (argc < 2 ||
	    !FILTER_INSTALL(0, FILTER_CALL(SYS_ptrace,
					   SECCOMP_RET_ERRNO | EPERM)))
		return 2;
	(void)execv(argv[1], argv + 1);
	return 2;
}
