/* The wait for tracees ends at its time, at whatever moment that comes. */
#include "daemon/capture/await.h"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/capture/ptrace/tracee.h"
#include "tests/unit/suite.h"

/* Longer than any test. */
#define LONG_NS (10000 * NS_PER_SEC)

static struct await a;
static pid_t child;

/* Starts a child that waits until it is killed. */
static void set_up(void)
{
	await_init(&a);
	ck_assert(a.made);
	await_enter();
	child = fork();
	ck_assert_int_ge(child, 0);
	while (child == 0)
		(void)pause();
}

static void tear_down(void)
{
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, __WALL);
	await_clear_timer(&a);
}

FIXTURE(set_up, tear_down)

/* The timer expires at moments from long before the call to long after it. */
TEST(the_time_ends_the_wait_at_whatever_moment_it_comes)
{
	pid_t pid;
	int status;

	for (uint64_t i = 0; i < 3000; i++) {
		const uint64_t until_ns = clock_mono_ns() + 50 * i;

		await_set_timer(&a, until_ns, NS_PER_MS);
		ck_assert(!await_next(&a, until_ns, &pid, &status));
		ck_assert_uint_ge(clock_mono_ns(), until_ns);
	}
}

TEST(an_earlier_expiration_does_not_end_the_wait)
{
	const uint64_t now_ns = clock_mono_ns();
	const uint64_t until_ns = now_ns + 20 * NS_PER_MS;
	pid_t pid;
	int status;

	await_set_timer(&a, now_ns, NS_PER_MS);
	ck_assert(!await_next(&a, until_ns, &pid, &status));
	ck_assert_uint_ge(clock_mono_ns(), until_ns);
}

TEST(without_tracees_the_wait_ends_at_once)
{
	const uint64_t until_ns = clock_mono_ns() + LONG_NS;
	int status;
	pid_t pid;

	OK(kill(child, SIGKILL));
	ck_assert_int_eq(waitpid(child, &status, __WALL), child);
	await_set_timer(&a, until_ns, NS_PER_MS);
	ck_assert(!await_next(&a, until_ns, &pid, &status));
}

static void seize(void)
{
	OK(ptrace(PTRACE_SEIZE, child, NULL, NULL));
}

static int take_of(pid_t expected)
{
	const uint64_t now_ns = clock_mono_ns();
	int status;
	pid_t pid;

	await_set_timer(&a, now_ns + LONG_NS, LONG_NS);
	ck_assert(await_next(&a, now_ns + LONG_NS, &pid, &status));
	ck_assert_int_eq(pid, expected);
	return status;
}

static int take(void)
{
	return take_of(child);
}

TEST(statuses_are_those_of_waitpid)
{
	int signal;

	seize();
	OK(ptrace(PTRACE_INTERRUPT, child, NULL, NULL));
	ck_assert_int_eq(tracee_classify(take(), &signal), TRACEE_TRAP);
	OK(ptrace(PTRACE_CONT, child, NULL, NULL));
	OK(kill(child, SIGUSR2));
	ck_assert_int_eq(tracee_classify(take(), &signal), TRACEE_SIGNAL);
	ck_assert_int_eq(signal, SIGUSR2);
	OK(ptrace(PTRACE_CONT, child, NULL, NULL));
	OK(kill(child, SIGKILL));
	ck_assert_int_eq(take(), SIGKILL);
}

TEST(the_exit_of_a_child_is_reported)
{
	const pid_t other = fork();

	if (other == 0)
		_exit(3);
	ck_assert_int_ge(other, 0);
	ck_assert_int_eq(take_of(other), W_EXITCODE(3, 0));
}

/* The timer expires at any moment. Each stop is reported, and only once. */
TEST(no_stop_is_lost)
{
	int status, signal;
	pid_t pid;

	seize();
	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t until_ns = clock_mono_ns() + 20 * i;

		await_set_timer(&a, until_ns, NS_PER_MS);
		OK(ptrace(PTRACE_INTERRUPT, child, NULL, NULL));
		while (!await_next(&a, until_ns, &pid, &status)) {
			until_ns = clock_mono_ns() + 100 * NS_PER_US;
			await_set_timer(&a, until_ns, NS_PER_MS);
		}
		ck_assert_int_eq(tracee_classify(status, &signal), TRACEE_TRAP);
		OK(ptrace(PTRACE_CONT, child, NULL, NULL));
	}
}

TEST(a_timer_without_a_wait_does_no_harm)
{
	struct itimerspec left;

	await_set_timer(&a, clock_mono_ns(), NS_PER_MS);
	/* The signal has a handler, which returns. */
	for (int i = 0; i < 3; i++)
		ck_assert_int_lt(pause(), 0);
	await_clear_timer(&a);
	ck_assert(!a.is_set);
	OK(timer_gettime(a.timer, &left));
	ck_assert_int_eq(left.it_value.tv_sec, 0);
	ck_assert_int_eq(left.it_value.tv_nsec, 0);
}
