/*
 * Prints the seccomp filters of capture as a header in C. Runs on the machine that builds:
 *
 *     print_filter MACHINE >capture_filter.h
 *
 * MACHINE: the architecture of the filters, as uname -m names it.
 */
#include <linux/filter.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/common/sandbox.h"

static uint32_t arch;

__attribute__((noreturn)) static void die(const char *what, int error)
{
	(void)fprintf(stderr, "print_filter: %s: %s\n", what, strerror(error));
	exit(EXIT_FAILURE);
}

static void print(const char *name, enum sandbox sandbox, bool kill)
{
	struct sock_filter i;
	int fd = memfd_create("filter", MFD_CLOEXEC), r;
	ssize_t n;

	if (fd < 0)
		die("memfd_create", errno);
	r = sandbox_export(sandbox, kill, arch, fd);
	if (r < 0)
		die("cannot make the filter", -r);
	if (lseek(fd, 0, SEEK_SET) < 0)
		die("lseek", errno);
	(void)printf("static struct sock_filter %s[] = {\n", name);
	while ((n = read(fd, &i, sizeof(i))) == sizeof(i))
		(void)printf("\t{0x%04x, %u, %u, 0x%08x},\n", i.code, i.jt, i.jf, i.k);
	if (n != 0)
		die("read", n < 0 ? errno : EIO);
	(void)printf("};\n");
	(void)close(fd);
}

int main(int argc, char **argv)
{
	arch = argc == 2 ? seccomp_arch_resolve_name(argv[1]) : 0;
	if (arch == 0)
		die("usage: print_filter MACHINE", EINVAL);
	(void)printf("#include <linux/filter.h>\n");
	print("filter_that_fails", SANDBOX_CAPTURE, false);
	print("filter_that_kills", SANDBOX_CAPTURE, true);
	print("perf_filter_that_fails", SANDBOX_CAPTURE_PERF, false);
	print("perf_filter_that_kills", SANDBOX_CAPTURE_PERF, true);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
