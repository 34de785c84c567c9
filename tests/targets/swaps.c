/*
 * swaps US: loads swap_alpha, is busy in it for so many us, unloads it; does the same with
 * swap_beta for twice the time; and again. Each lies where the other one was.
 *
 * Says "ready PID"; on SIGUSR1 it says "alpha NS beta NS same 1": the processor time in each
 * library, and whether both were at the same address. Then it ends.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>

#include "target.h"

struct library {
	const char *name;
	uint64_t ns;
	void *at;
};

static char directory[PATH_MAX];

static __attribute__((noipa)) void use(struct library *l, uint64_t ns)
{
	char path[PATH_MAX + 16];
	void (*function)(uint64_t);
	void *handle, *entry;
	uint64_t since;
	Dl_info info;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, l->name);
	handle = dlopen(path, RTLD_NOW);
	need(handle != NULL);
	entry = dlsym(handle, "entry");
	need(entry != NULL && dladdr(entry, &info) != 0);
	l->at = info.dli_fbase;
	memcpy(&function, &entry, sizeof(function));
	since = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	function(ns);
	l->ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - since;
	(void)dlclose(handle);
}

int main(int argc, char **argv)
{
	const uint64_t ns = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000 : 5000000;
	struct library alpha = {.name = "swap_alpha"}, beta = {.name = "swap_beta"};

	need(readlink("/proc/self/exe", directory, sizeof(directory) - 1) > 0);
	(void)dirname(directory);
	handle(SIGUSR1, ask, SA_RESTART);
	ready(getpid());
	while (!asked) {
		use(&alpha, ns);
		use(&beta, 2 * ns);
	}
	printf("alpha %lu beta %lu same %d\n", alpha.ns, beta.ns, alpha.at == beta.at);
	return EXIT_SUCCESS;
}
