#include "lib/base/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "tests/unit/suite.h"

/* A watched pipe, and what its handler does. */
struct watched {
	int fds[2];
	struct loop_source *source;
	int calls;
	struct watched *to_remove;
	struct watched *to_add;
};

static struct loop *loop;

static void set_up(void)
{
	OK(loop_new(&loop));
}

static void tear_down(void)
{
	loop_free(loop);
}

static void on_readable(void *ctx);

static void watch(struct watched *p)
{
	OK(loop_add(loop, p->fds[0], on_readable, p, &p->source));
}

static void on_readable(void *ctx)
{
	struct watched *p = ctx;

	p->calls++;
	if (p->to_remove != NULL)
		loop_remove(loop, &p->to_remove->source);
	if (p->to_add != NULL)
		watch(p->to_add);
	p->to_add = NULL;
}

static struct watched make(void)
{
	struct watched p = {.calls = 0};

	OK(pipe2(p.fds, O_CLOEXEC | O_NONBLOCK));
	return p;
}

static void fill(const struct watched *p)
{
	ck_assert_int_eq(write(p->fds[1], "x", 1), 1);
}

static void drain(const struct watched *p)
{
	char c;

	ck_assert_int_eq(read(p->fds[0], &c, 1), 1);
}

static void run(void)
{
	OK(loop_run_once(loop, 0));
}

FIXTURE(set_up, tear_down)

TEST(a_handler_runs_as_long_as_there_is_something_to_read)
{
	struct watched p = make();

	watch(&p);
	run();
	ck_assert_int_eq(p.calls, 0);
	fill(&p);
	run();
	run();
	ck_assert_int_eq(p.calls, 2);
	drain(&p);
	run();
	ck_assert_int_eq(p.calls, 2);
	/* The end of a pipe is an event, too. */
	(void)close(p.fds[1]);
	run();
	ck_assert_int_eq(p.calls, 3);
	loop_remove(loop, &p.source);
	ck_assert_ptr_null(p.source);
	loop_remove(loop, &p.source);
	run();
	ck_assert_int_eq(p.calls, 3);
}

TEST(a_handler_may_remove_itself)
{
	struct watched p = make();

	p.to_remove = &p;
	watch(&p);
	fill(&p);
	run();
	run();
	ck_assert_int_eq(p.calls, 1);
}

/* Both are ready in the same round: the first handler removes the other source. */
TEST(a_handler_may_remove_another_of_the_same_round)
{
	struct watched a = make(), b = make();

	a.to_remove = &b;
	b.to_remove = &a;
	watch(&a);
	watch(&b);
	fill(&a);
	fill(&b);
	run();
	ck_assert_int_eq(a.calls + b.calls, 1);
	run();
	ck_assert_int_eq(a.calls + b.calls, 2);
	loop_remove(loop, &a.source);
	loop_remove(loop, &b.source);
}

/* The memory of a removed source must not be reused within the round. */
TEST(a_handler_may_remove_one_and_add_another)
{
	struct watched a = make(), b = make(), c = make();

	a.to_remove = &b;
	a.to_add = &c;
	b.to_remove = &a;
	b.to_add = &c;
	watch(&a);
	watch(&b);
	fill(&a);
	fill(&b);
	run();
	ck_assert_int_eq(a.calls + b.calls, 1);
	ck_assert_int_eq(c.calls, 0);
	fill(&c);
	run();
	ck_assert_int_eq(c.calls, 1);
	loop_remove(loop, &a.source);
	loop_remove(loop, &b.source);
	loop_remove(loop, &c.source);
}

TEST(with_many_sources_all_handlers_are_called)
{
	enum { N = 150 };
	struct watched many[N];

	for (int i = 0; i < N; i++) {
		many[i] = make();
		fill(&many[i]);
	}
	for (int i = 0; i < N; i++)
		watch(&many[i]);
	/* 64 events a round: three rounds handle all. */
	run();
	run();
	run();
	for (int i = 0; i < N; i++) {
		ck_assert_int_ge(many[i].calls, 1);
		loop_remove(loop, &many[i].source);
	}
}

TEST(a_writer_is_called_while_there_is_room)
{
	struct watched p = make();
	char bytes[4096] = {0};

	OK(loop_add_writer(loop, p.fds[1], on_readable, &p, &p.source));
	run();
	ck_assert_int_eq(p.calls, 1);
	while (write(p.fds[1], bytes, sizeof(bytes)) > 0)
		continue;
	run();
	ck_assert_int_eq(p.calls, 1);
	/* A pause keeps what the source waits for. */
	loop_pause(loop, p.source);
	ck_assert_int_eq(read(p.fds[0], bytes, sizeof(bytes)), sizeof(bytes));
	run();
	ck_assert_int_eq(p.calls, 1);
	loop_resume(loop);
	run();
	ck_assert_int_eq(p.calls, 2);
	OK(close(p.fds[0]));
	run();
	ck_assert_int_eq(p.calls, 3);
	loop_remove(loop, &p.source);
}

TEST(unwatchable_descriptors_are_refused)
{
	struct loop_source *source = NULL;
	struct watched p = make();
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(loop_add(loop, file, on_readable, &p, &source), -EPERM);
	ck_assert_int_eq(loop_add(loop, -1, on_readable, &p, &source), -EBADF);
	ck_assert_ptr_null(source);
	watch(&p);
	ck_assert_int_eq(loop_add(loop, p.fds[0], on_readable, &p, &source), -EEXIST);
	ck_assert_ptr_null(source);
	loop_remove(loop, &p.source);
}

TEST(freeing_closes_no_descriptor_of_a_user)
{
	struct watched p = make();

	watch(&p);
	loop_remove(loop, &p.source);
	loop_free(loop);
	loop = NULL;
	ck_assert_int_ge(fcntl(p.fds[0], F_GETFD), 0);
	loop_free(NULL);
}

static void on_signal(int number)
{
	(void)number;
}

/* The timer repeats, so that at least one signal arrives during the wait. */
TEST(a_signal_ends_the_wait_and_is_no_error)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct itimerval every_ms = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000};

	OK(sigaction(SIGALRM, &action, NULL));
	OK(setitimer(ITIMER_REAL, &every_ms, NULL));
	OK(loop_run_once(loop, -1));
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
	(void)number;
	alarms++;
}

/* Runs the loop until a signal: no source wakes it. */
static void wait_for_alarm(void)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval soon = {.it_value.tv_usec = 20000};

	alarms = 0;
	OK(sigaction(SIGALRM, &action, NULL));
	OK(setitimer(ITIMER_REAL, &soon, NULL));
	OK(loop_run_once(loop, -1));
	ck_assert_int_eq(alarms, 1);
}

/* The handler is not called before loop_resume(), even if the peer closes. */
TEST(a_paused_source_is_not_called)
{
	struct watched p = make();

	watch(&p);
	fill(&p);
	loop_pause(loop, p.source);
	loop_pause(loop, p.source);
	wait_for_alarm();
	ck_assert_int_eq(p.calls, 0);
	loop_resume(loop);
	run();
	ck_assert_int_eq(p.calls, 1);
	loop_pause(loop, p.source);
	close_fd(&p.fds[1]);
	/* The kernel reports a closed peer all the same, but only once. */
	run();
	wait_for_alarm();
	loop_resume(loop);
	run();
	ck_assert_int_eq(p.calls, 2);
	loop_remove(loop, &p.source);
	close_fd(&p.fds[0]);
}

/* Both have bytes to read, and are paused. */
static void watch_paused(struct watched *p, struct watched *q)
{
	watch(p);
	watch(q);
	fill(p);
	fill(q);
	loop_pause(loop, p->source);
	loop_pause(loop, q->source);
}

TEST(one_source_is_resumed_without_the_others)
{
	struct watched p = make(), q = make();

	watch_paused(&p, &q);
	loop_resume_source(loop, q.source);
	run();
	ck_assert_int_eq(p.calls, 0);
	ck_assert_int_eq(q.calls, 1);
	loop_remove(loop, &p.source);
	loop_remove(loop, &q.source);
	for (int i = 0; i < 2; i++) {
		close_fd(&p.fds[i]);
		close_fd(&q.fds[i]);
	}
}

TEST(a_paused_source_is_removed)
{
	struct watched p = make(), q = make();

	watch_paused(&p, &q);
	loop_remove(loop, &p.source);
	loop_resume(loop);
	run();
	ck_assert_int_eq(p.calls, 0);
	ck_assert_int_eq(q.calls, 1);
	loop_remove(loop, &q.source);
	for (int i = 0; i < 2; i++) {
		close_fd(&p.fds[i]);
		close_fd(&q.fds[i]);
	}
}
