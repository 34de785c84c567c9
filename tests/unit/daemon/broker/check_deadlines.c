/* Children that do not answer or do not end are killed. */
#include "daemon/broker/children/children.h"
#include "daemon/broker/deadlines.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/msg/msg_io.h"
#include "lib/base/loop.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct unwind unwind;
static struct instance instance;
static struct run *run;
static int end;

/* Such a process is the unwind process of a target. */
static void set_up(void)
{
	pid_t pid = make_sleeper();

	build_broker(&b);
	OK(loop_new(&b.modules.state.loop));
	/* After the fork, so that only the test has the socket's other end. */
	end = build_unwind(&b, &unwind);
	unwind.child.pid = pid;
	OK(loop_add(b.modules.state.loop, unwind.child.fd, child_on_readable, &unwind.child,
		    &unwind.child.source));
	instance = (struct instance){.pidfd = -1};
	run = build_run(&b, &instance, &unwind);
}

static void tear_down(void)
{
	(void)kill(unwind.child.pid, SIGKILL);
	(void)waitpid(unwind.child.pid, NULL, 0);
	close_fd(&end);
	loop_remove(b.modules.state.loop, &unwind.child.source);
	loop_free(b.modules.state.loop);
}

static void check_times(int times)
{
	for (int i = 0; i < times; i++)
		deadlines_check_answers(&b);
}

/* Expects that the process is killed at check OVERDUE_CHECKS and not before. */
static void expect_kill(void)
{
	int status;

	check_times(OVERDUE_CHECKS - 1);
	ck_assert_int_eq(unwind.child.state, CHILD_READY);
	check_times(1);
	ck_assert_int_eq(unwind.child.state, CHILD_KILLED);
	ck_assert_int_eq(waitpid(unwind.child.pid, &status, 0), unwind.child.pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

FIXTURE(set_up, tear_down)

TEST(a_child_that_owes_no_answer_stays)
{
	check_times(3 * OVERDUE_CHECKS);
	ck_assert_int_eq(unwind.child.state, CHILD_READY);
}

TEST(a_child_that_does_not_close_a_session_is_killed)
{
	run_close(run);
	ck_assert_int_eq(run->phase, RUN_CLOSING);
	expect_kill();
}

TEST(a_child_that_does_not_open_a_session_is_killed)
{
	run->session = SESSION_ASKED;
	expect_kill();
}

TEST(an_answer_resets_the_count)
{
	run->session = SESSION_ASKED;
	check_times(OVERDUE_CHECKS - 1);
	run->session = SESSION_OPEN;
	run_close(run);
	check_times(OVERDUE_CHECKS - 1);
	ck_assert_int_eq(unwind.child.state, CHILD_READY);
	run->phase = RUN_CLOSED;
	check_times(OVERDUE_CHECKS);
	ck_assert_int_eq(unwind.child.state, CHILD_READY);
}

TEST(a_child_that_does_not_become_ready_is_killed)
{
	unwind.child.state = CHILD_STARTS;
	check_times(OVERDUE_CHECKS - 1);
	ck_assert_int_eq(unwind.child.state, CHILD_STARTS);
	check_times(1);
	ck_assert_int_eq(unwind.child.state, CHILD_KILLED);
}

/* Makes the process capture, with the socket. */
static struct child *as_capture(void)
{
	struct child *capture = &b.modules.children.capture;

	*capture = (struct child){
		.type = &child_types[CHILD_CAPTURE],
		.children = &b.modules.children,
		.state = CHILD_READY,
		.pid = unwind.child.pid,
		.fd = unwind.child.fd,
	};
	unwind.child.pid = 0;
	unwind.child.fd = -1;
	return capture;
}

static void expect_kill_of_capture(void)
{
	struct child *capture = as_capture();

	check_times(OVERDUE_CHECKS - 1);
	ck_assert_int_eq(capture->state, CHILD_READY);
	check_times(1);
	ck_assert_int_eq(capture->state, CHILD_KILLED);
	unwind.child.pid = capture->pid;
}

TEST(a_capture_that_does_not_attach_is_killed)
{
	run->in_capture = true;
	run->phase = RUN_WAITING;
	expect_kill_of_capture();
}

TEST(a_capture_that_does_not_detach_is_killed)
{
	run->in_capture = true;
	run->phase = RUN_STOPPING;
	expect_kill_of_capture();
}

/* The target's RECORD_END needs room in the ring of its unwind process. */
TEST(an_unwind_process_that_makes_no_room_is_killed_before_capture)
{
	struct child *capture = &b.modules.children.capture;

	*capture = (struct child){
		.type = &child_types[CHILD_CAPTURE],
		.children = &b.modules.children,
		.state = CHILD_READY,
		.pid = make_sleeper(),
		.fd = dup(end),
	};
	run->in_capture = true;
	run->phase = RUN_STOPPING;
	expect_kill();
	ck_assert_int_eq(capture->state, CHILD_READY);
	check_times(OVERDUE_CHECKS - 1);
	ck_assert_int_eq(capture->state, CHILD_READY);
	check_times(1);
	ck_assert_int_eq(capture->state, CHILD_KILLED);
	ck_assert_int_eq(waitpid(capture->pid, NULL, 0), capture->pid);
}

TEST(a_capture_that_makes_no_ring_is_killed)
{
	unwind.rings_awaited = 1;
	expect_kill_of_capture();
}

TEST(a_capture_that_profiles_owes_nothing)
{
	struct child *capture = as_capture();

	run->in_capture = true;
	check_times(3 * OVERDUE_CHECKS);
	ck_assert_int_eq(capture->state, CHILD_READY);
	unwind.child.pid = capture->pid;
	close_fd(&capture->fd);
}

/* Makes the process a ship that keeps a chunk. */
static struct ship *as_ship(struct ship *s)
{
	*s = (struct ship){
		.child = {.type = &child_types[CHILD_SHIP],
			  .children = &b.modules.children,
			  .state = CHILD_READY,
			  .pid = unwind.child.pid,
			  .fd = unwind.child.fd},
		.n_in_flight = 1,
		.n_handed = 1,
	};
	unwind.child.pid = 0;
	unwind.child.fd = -1;
	b.modules.children.ships[b.modules.children.n_ships++] = s;
	return s;
}

static void expect_ping(void)
{
	struct ipc_message m;

	OK(fcntl(end, F_SETFL, O_NONBLOCK));
	ck_assert_int_eq(ipc_recv(end, &m), 1);
	ck_assert_uint_eq(msg_type_of(&m), MSG_PING);
	ck_assert_int_eq(ipc_recv(end, &m), -EAGAIN);
}

TEST(a_ship_that_does_not_answer_a_ping_is_killed)
{
	struct ship ship;
	struct child *child = &as_ship(&ship)->child;

	check_times(OVERDUE_PING_CHECKS + OVERDUE_CHECKS - 1);
	expect_ping();
	ck_assert_int_eq(child->state, CHILD_READY);
	check_times(1);
	ck_assert_int_eq(child->state, CHILD_KILLED);
	unwind.child.pid = child->pid;
}

TEST(a_ship_that_answers_pings_may_keep_its_chunks)
{
	const struct msg_id pong = {.h = MSG_HEADER(MSG_PONG)};
	struct ship ship;
	struct child *child = &as_ship(&ship)->child;

	for (int i = 0; i < 3; i++) {
		check_times(OVERDUE_PING_CHECKS + OVERDUE_CHECKS - 1);
		expect_ping();
		OK(ipc_send(end, &pong, sizeof(pong), NULL, 0));
		child_on_readable(child);
	}
	ck_assert_int_eq(child->state, CHILD_READY);
	unwind.child.pid = child->pid;
	close_fd(&child->fd);
}

TEST(a_child_that_closes_its_socket_and_stays_is_killed)
{
	close_fd(&end);
	OK(loop_run_once(b.modules.state.loop, 0));
	ck_assert_int_lt(unwind.child.fd, 0);
	expect_kill();
}

TEST(a_child_that_has_to_leave_and_stays_is_killed)
{
	run->id = 0;
	unwind.child.is_leaving = true;
	child_close(&unwind.child);
	expect_kill();
	children_sweep(&b.modules.children);
	ck_assert_uint_eq(b.modules.children.n_unwinds, 1);
}
