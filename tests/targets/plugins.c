/*
 * Loads libm.so.6, to which it is not linked, is busy in it for 500 ms, unloads
 * it; does the same with libresolv.so.2; and again. So at the addresses of the
 * one is sooner or later the other.
 *
 * Says "ready PID"; on SIGUSR1 it says "loads N" and ends.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUSY_MS 500

static volatile sig_atomic_t asked;
static volatile double sum;

static void on_signal(int number)
{
	(void)number;
	asked = 1;
}

static long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

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
	long start = now_ms();

	while (now_ms() - start < BUSY_MS)
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
	long start = now_ms();

	while (now_ms() - start < BUSY_MS)
		sum += encode(in, sizeof(in), out, sizeof(out));
	(void)dlclose(handle);
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	unsigned long n = 0;

	(void)sigaction(SIGUSR1, &action, NULL);
	printf("ready %ld\n", (long)getpid());
	(void)fflush(stdout);
	while (!asked) {
		use_libm();
		use_libresolv();
		n += 2;
	}
	printf("loads %lu\n", n);
	return EXIT_SUCCESS;
}
