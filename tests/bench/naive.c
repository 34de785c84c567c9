/*
 * naive PID HZ: a profiler that unwinds by ptrace while the thread is stopped. At each tick it
 * goes from thread to thread: it stops the thread, unwinds the thread's stack with
 * libunwind-ptrace, and continues the thread. A round that takes longer than a tick delays the
 * next one; the ticks in between count as missed.
 */
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include <libunwind-ptrace.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"
#include "tests/bench/tracer.h"

#define FRAMES_MAX 512

static uint64_t unwind(unw_addr_space_t space, void *accessor)
{
	unw_cursor_t cursor;
	uint64_t frames = 0;
	int r = unw_init_remote(&cursor, space, accessor);

	while (r >= 0 && frames < FRAMES_MAX) {
		frames++;
		r = unw_step(&cursor);
		if (r == 0)
			break;
	}
	return frames;
}

static void look_at(struct tracer *tracer, unw_addr_space_t space, pid_t tid, void *accessor)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) < 0 ||
	    !WIFSTOPPED(status))
		return;
	tracer->frames += unwind(space, accessor);
	tracer->stops++;
	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
}

/* Returns the number of ticks that have passed since *next_ns, and moves *next_ns behind them. */
static uint64_t ticks_since(uint64_t *next_ns, uint64_t period_ns)
{
	const uint64_t now_ns = clock_mono_ns();
	const uint64_t ticks = now_ns < *next_ns ? 0 : 1 + (now_ns - *next_ns) / period_ns;

	*next_ns += ticks * period_ns;
	return ticks;
}

/* Sleeps until the next tick. Returns ticks_since(); 0: SIGTERM has come. */
static uint64_t wait_for_tick(uint64_t *next_ns, uint64_t period_ns)
{
	struct timespec at = {.tv_sec = (time_t)(*next_ns / NS_PER_SEC),
			      .tv_nsec = (long)(*next_ns % NS_PER_SEC)};

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	return tracer_is_over() ? 0 : ticks_since(next_ns, period_ns);
}

int main(int argc, char **argv)
{
	uint64_t period_ns, next_ns, ticks;
	struct tracer tracer = tracer_start(argc, argv, &period_ns);
	unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
	void **accessors = calloc(tracer.n + 1, sizeof(*accessors));

	if (space == NULL || accessors == NULL)
		return EXIT_FAILURE;
	tracer_attach_all(&tracer);
	unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
	for (size_t i = 0; i < tracer.n; i++)
		accessors[i] = _UPT_create(tracer.tids[i]);
	next_ns = clock_mono_ns() + period_ns;
	while ((ticks = wait_for_tick(&next_ns, period_ns)) > 0) {
		tracer.ticks += ticks;
		tracer.expected += ticks * tracer.n;
		for (size_t i = 0; i < tracer.n && !tracer_is_over(); i++)
			look_at(&tracer, space, tracer.tids[i], accessors[i]);
	}
	/* The ticks of the last round, which may have been the only one. */
	ticks = ticks_since(&next_ns, period_ns);
	tracer.ticks += ticks;
	tracer.expected += ticks * tracer.n;
	tracer_finish(&tracer);
}
