// cflags: -fno-optimize-sibling-calls -ldl
/*
 * A process with one stack that leads through many libraries.
 *
 * Usage: chain LIBRARY... Each library is a copy of link.c: its pass() calls the
 * one of the next library, the last one calls end_of_chain(), which blocks. Says
 * "ready PID" before the first call.
 */
#include <dlfcn.h>

#include "target.h"

#define LIBRARIES_MAX 64

typedef int (*link_fn)(const void *next);

static __attribute__((noipa)) int end_of_chain(const void *next)
{
	for (;;)
		(void)sleep(1000);
	return next != NULL;
}

int main(int argc, char **argv)
{
	link_fn list[LIBRARIES_MAX + 1];
	int n = argc - 1;

	if (n < 1 || n > LIBRARIES_MAX)
		return 2;
	for (int i = 0; i < n; i++) {
		void *library = dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL);
		void *pass = library ? dlsym(library, "pass") : NULL;

		if (!pass) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		list[i] = (link_fn)pass;
	}
	list[n] = end_of_chain;
	ready(getpid());
	return list[0](list + 1);
}
