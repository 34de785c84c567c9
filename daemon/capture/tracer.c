#include "daemon/capture/tracer.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"

/* How often the thread is looked for: its end takes some 10 us without tracees. */
#define POLL_NS (50 * NS_PER_US)

struct tracer {
	void (*run)(void *ctx);
	void *ctx;
	pid_t tid;
};

static void *begin(void *ctx)
{
	struct tracer *tracer = ctx;

	tracer->tid = gettid();
	tracer->run(tracer->ctx);
	return NULL;
}

static bool is_there(pid_t tid)
{
	return syscall(SYS_tgkill, getpid(), tid, 0) == 0;
}

/*
 * pthread_join(3) returns when the thread has left its memory. The kernel detaches its tracees
 * after that (exit_mm() and exit_notify() in kernel/exit.c), just before the thread's number
 * becomes free; until then no other thread can trace them.
 */
int tracer_run(void (*run)(void *ctx), void *ctx)
{
	const struct timespec interval = {.tv_nsec = POLL_NS};
	struct tracer tracer = {.run = run, .ctx = ctx};
	pthread_t thread;
	int r = pthread_create(&thread, NULL, begin, &tracer);

	if (r != 0)
		return -r;
	(void)pthread_join(thread, NULL);
	while (is_there(tracer.tid))
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &interval, NULL);
	return 0;
}
