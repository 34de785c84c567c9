/*
 * What is no system call. Not under the sanitizers: threads that end by the
 * bare call, or are killed, are none to them.
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
	fake_begin(&d);
}

static void tear_down(void)
{
	sentry_profd_disconnect();
	fake_end(&d);
}

static volatile bool is_done;

/* Every question, and spans that come and go, for hours of the clock. */
static void ask_and_open(void)
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
 * A thread that may only read, write and exit from here on (seccomp(2), strict
 * mode): any other call is the end of it.
 */
static void *call_nothing(void *ctx)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE];

	(void)ctx;
	(void)sentry_profd_thread_id(id, sizeof(id));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0) {
		ask_and_open();
		is_done = true;
	}
	(void)syscall(SYS_exit, 0);
	return NULL;
}

static bool takes_no_call(void)
{
	pthread_t thread;

	is_done = false;
	OK(pthread_create(&thread, NULL, call_nothing, NULL));
	OK(pthread_join(thread, NULL));
	return is_done;
}

FIXTURE(set_up, tear_down)

TEST(with_an_open_span_nothing_is_a_system_call)
{
	(void)sentry_profd_root_span_begin(1);
	/* It has heard of that. */
	d.page->wants_open = 0;
	ck_assert(takes_no_call());
}

TEST(a_span_that_nobody_waits_for_is_no_system_call)
{
	d.page->wants_open = 0;
	ck_assert(takes_no_call());
	/* And the first one of a profiler that stands still is. */
	d.page->wants_open = 1;
	ck_assert(!takes_no_call());
}
