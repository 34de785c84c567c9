/* Children that do not answer or do not end are killed. */
#include "daemon/broker/children/children.h"
#include "daemon/broker/overdue.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/msg/msg_io.h"
#include "lib/base/loop.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct unwind unwind;
static struct instance instance;
static struct target *target;
static int end;

/* A process that never sends a message, as the unwind process of a target. */
static void set_up(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	ck_assert_int_gt(pid, 0);
	build_broker(&b);
	OK(loop_new(&b.parts.state.loop));
	/* After the fork, so that only the test has the socket's other end. */
	end = build_unwind(&b, &unwind);
	unwind.child.pid = pid;
	OK(loop_add(b.parts.state.loop, unwind.child.fd, child_on_readable, &unwind.child,
		    &unwind.child.source));
	instance = (struct instance){.pidfd = -1};
	target = build_run(&b, &instance, &unwind);
}

static void tear_down(void)
{
	(void)kill(unwind.child.pid, SIGKILL);
	(void)waitpid(unwind.child.pid, NULL, 0);
	close_fd(&end);
	loop_remove(b.parts.state.loop, &unwind.child.source);
	loop_free(b.parts.state.loop);
}

static void look(int times)
{
	for (int i = 0; i < times; i++)
		overdue_check(&b);
}

/* Expects that the process is killed at check OVERDUE_CHECKS and not before. */
static void is_killed(void)
{
	int status;

	look(OVERDUE_CHECKS - 1);
	ck_assert_int_eq(unwind.child.state, CHILD_READY);
	look(1);
	ck_assert_int_eq(unwind.child.state, CHILD_KILLED);
	ck_assert_int_eq(waitpid(unwind.child.pid, &status, 0), unwind.child.pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

FIXTURE(set_up, tear_down)

TEST(one_that_owes_nothing_stays)
{
	look(3 * OVERDUE_CHECKS);
	ck_assert_int_eq(unwind.child.state, CHILD_READY);
}

TEST(a_session_that_it_does_not_close)
{
	target_close(target);
	ck_assert_int_eq(target->phase, TARGET_CLOSING);
	is_killed();
}

TEST(a_session_that_it_does_not_open)
{
	target->session = SESSION_ASKED;
	is_killed();
}

/* An answer resets the count. */
TEST(what_is_paid_is_paid)
{
	target->session = SESSION_ASKED;
	look(OVERDUE_CHECKS - 1);
	target->session = SESSION_OPEN;
	target_close(target);
	look(OVERDUE_CHECKS - 1);
	ck_assert_int_eq(unwind.child.state, CHILD_READY);
	target->phase = TARGET_CLOSED;
	look(OVERDUE_CHECKS);
	ck_assert_int_eq(unwind.child.state, CHILD_READY);
}

TEST(a_closed_socket_is_not_an_end)
{
	close_fd(&end);
	OK(loop_run_once(b.parts.state.loop, 0));
	ck_assert_int_lt(unwind.child.fd, 0);
	is_killed();
}

TEST(one_that_is_told_to_leave_and_stays)
{
	target->id = 0;
	unwind.child.is_leaving = true;
	child_close(&unwind.child);
	is_killed();
	children_sweep(&b.parts.children);
	ck_assert_uint_eq(b.parts.children.n_unwinds, 1);
}
