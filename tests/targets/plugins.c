/*
 * Loads libm.so.6, to which it is not linked, is busy in it for 500 ms, unloads
 * it; does the same with libresolv.so.2; and again. So at the addresses of the
 * one is sooner or later the other.
 *
 * Says "ready PID"; on SIGUSR1 it says "loads N" and ends.
 */
#include <dlfcn.h>

#include "target.h"

#define BUSY_NS UINT64_C(500000000)

static volatile double sum;

static void *load(const char *library, const char *name, void *ret_function)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	void *function = handle == NULL ? NULL : dlsym(handle, name);

	if (function == NULL) {
		(void)fprintf(stderr, "%s\n", dlerror());
		exit(EXIT_FAILURE);
	}
	memcpy(ret_function, &function, sizeof(function));
	return handle;
}

static __attribute__((noipa)) void use_libm(void)
{
	double (*lgamma_function)(double);
	void *handle = load("libm.so.6", "lgamma", &lgamma_function);
	const uint64_t since = now_ns();

	while (now_ns() - since < BUSY_NS)
		for (int i = 0; i < 1000; i++)
			sum += lgamma_function(1.5 + i);
	(void)dlclose(handle);
}

static __attribute__((noipa)) void use_libresolv(void)
{
	/* resolv.h: base64. */
	int (*encode)(const unsigned char *, size_t, char *, size_t);
	void *handle = load("libresolv.so.2", "__b64_ntop", &encode);
	static unsigned char in[3000];
	static char out[4100];
	const uint64_t since = now_ns();

	while (now_ns() - since < BUSY_NS)
		sum += encode(in, sizeof(in), out, sizeof(out));
	(void)dlclose(handle);
}

int main(void)
{
	unsigned long n = 0;

	handle(SIGUSR1, ask, SA_RESTART);
	ready(getpid());
	while (!asked) {
		use_libm();
		use_libresolv();
		n += 2;
	}
	printf("loads %lu\n", n);
	return EXIT_SUCCESS;
}
