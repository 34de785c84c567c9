/*
 * 50 threads of which a few compute, most wait in different calls, and one is nearly always in a
 * write to a pipe that returns with a part when it is interrupted. Says "ready PID" when all run.
 * Each thread checks the results of its calls, and aborts if one is wrong.
 */
#include <poll.h>
#include <sys/prctl.h>

#include "target.h"

enum { BUSY = 4, WAITING = 43, BYTES = 1 << 20, PART = 4096 };

static volatile uint64_t work;
static int never[2], stream[2];

static void *compute(void *ctx)
{
	(void)ctx;
	for (;;)
		work = burn(work, 1000);
	return NULL;
}

static void *wait_in_call(void *ctx)
{
	const uintptr_t kind = (uintptr_t)ctx % 3;
	struct pollfd p = {.fd = never[0], .events = POLLIN};
	struct timespec nap = timespec_of(50000000);
	char byte;

	for (;;) {
		if (kind == 0)
			need(read(never[0], &byte, 1) == 1);
		else if (kind == 1)
			need(poll(&p, 1, 100) == 0);
		else
			need(nanosleep(&nap, NULL) == 0);
	}
	return NULL;
}

/* A whole call, whose parts are not seen, or what was written when the profiler detached. */
static void *write_all(void *ctx)
{
	static uint8_t bytes[BYTES];

	(void)ctx;
	for (;;) {
		const ssize_t n = write(stream[1], bytes, sizeof(bytes));

		need(n > 0);
	}
	return NULL;
}

static void *read_slowly(void *ctx)
{
	static uint8_t bytes[PART];
	const struct timespec nap = timespec_of(1000000);

	(void)ctx;
	for (;;) {
		need(read(stream[0], bytes, sizeof(bytes)) > 0);
		need(nanosleep(&nap, NULL) == 0);
	}
	return NULL;
}

int main(void)
{
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	need(pipe(never) == 0 && pipe(stream) == 0);
	start(write_all, NULL);
	start(read_slowly, NULL);
	for (uintptr_t k = 0; k < BUSY; k++)
		start(compute, NULL);
	for (uintptr_t k = 0; k < WAITING; k++)
		start(wait_in_call, (void *)k);
	ready(getpid());
	for (;;)
		(void)pause();
}
