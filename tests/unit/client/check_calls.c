/*
 * Functions of the client library that make no system call. These tests do not run with sanitizers,
 * which do not support a thread that ends by exit(2) or is killed.
 */
#include "lib/client/sentry_profd.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/client/fake_clock.h"
#include "tests/unit/client/fake_daemon.h"
#include "tests/unit/suite.h"

static struct fake_daemon d;

static void set_up(void)
{
	fake_connect(&d);
}

static void tear_down(void)
{
	sentry_profd_disconnect();
	fake_end(&d);
}

static volatile bool is_done;

/* Calls the functions that read the page, and begins and ends spans, for 83 minutes of the clock.
 */
static void call_all_and_open_spans(void)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE];
	char profiler_id[SENTRY_PROFD_PROFILER_ID_SIZE];

	for (int i = 0; i < 100000; i++) {
		sentry_profd_span span = sentry_profd_root_span_begin(i % 3);

		d.page->beat++;
		fake_clock_ns += UINT64_C(50000000);
		(void)sentry_profd_state();
		(void)sentry_profd_profiler_id(profiler_id, sizeof(profiler_id));
		(void)sentry_profd_thread_id(id, sizeof(id));
		sentry_profd_root_span_end(span);
	}
}

/*
 * A thread that enters the strict mode of seccomp(2): the kernel kills the thread at a system call
 * other than read, write and exit.
 */
static void *run_in_strict_mode(void *ctx)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE];

	(void)ctx;
	(void)sentry_profd_thread_id(id, sizeof(id));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0) {
		call_all_and_open_spans();
		is_done = true;
	}
	(void)syscall(SYS_exit, 0);
	return NULL;
}

static bool makes_no_system_call(void)
{
	pthread_t thread;

	is_done = false;
	OK(pthread_create(&thread, NULL, run_in_strict_mode, NULL));
	OK(pthread_join(thread, NULL));
	return is_done;
}

FIXTURE(set_up, tear_down)

TEST(no_function_makes_a_system_call_while_a_span_is_open)
{
	(void)sentry_profd_root_span_begin(1);
	/* The daemon knows of the open span. */
	d.page->wants_open = 0;
	ck_assert(makes_no_system_call());
}

TEST(a_span_makes_a_system_call_only_if_the_daemon_wants_to_know)
{
	d.page->wants_open = 0;
	ck_assert(makes_no_system_call());
	/* If the profiler is stopped, the first span sends a message. */
	d.page->wants_open = 1;
	ck_assert(!makes_no_system_call());
}
