/*
 * The last messages of a child are read before its end is handled, and the end is judged by its
 * status.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/children/reap.h"
#include "daemon/broker/files/quarantine.h"
#include "daemon/broker/state/forks.h"
#include "daemon/msg/msg_io.h"
#include "lib/base/clock.h"
#include "lib/base/loop.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct unwind unwind;
static bool existed_at_message; /* the process still existed when its last message was read */

static void note(void *ctx, struct child *child, struct ipc_message *m)
{
	(void)ctx;
	(void)m;
	existed_at_message = kill(child->pid, 0) == 0;
	child_fail(child, "sends an unknown message");
}

static const struct child_type type = {.kind = CHILD_UNWIND, .name = "unwind"};

static void set_up(void)
{
	build_broker(&b);
	b.modules.children.events.message = note;
	OK(loop_new(&b.modules.state.loop));
	OK(files_new(b.modules.state.loop, &b.modules.files));
	b.modules.children.has_worked[CHILD_UNWIND] = true;
	unwind = (struct unwind){.link_fd = -1, .key.uid = 7};
	unwind.child = (struct child){.children = &b.modules.children,
				      .type = &type,
				      .fd = -1,
				      .state = CHILD_READY,
				      .started_ns = clock_mono_ns()};
	b.modules.children.unwinds[b.modules.children.n_unwinds++] = &unwind;
	existed_at_message = false;
}

static void tear_down(void)
{
	quarantine_page_free(&unwind.reading);
	quarantine_clear(&b.modules.quarantine);
	files_free(b.modules.files);
	loop_free(b.modules.state.loop);
}

/* Sends a message and crashes while it reads the file with number 1. */
static void crash(int fd, int page_fd)
{
	const struct rlimit none = {0, 0};
	const uint32_t number = 1;

	(void)!pwrite(page_fd, &number, sizeof(number), 0);
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(SIGSEGV, SIG_DFL);
	if (ipc_send(fd, "nonsense", 8, NULL, 0) == 0)
		(void)raise(SIGSEGV);
	_exit(0);
}

FIXTURE(set_up, tear_down)

TEST(the_last_messages_are_read_before_the_pid_is_freed)
{
	siginfo_t ended;
	int pair[2], fd;

	OK(ipc_pair(pair));
	OK(quarantine_page_new(&unwind.reading, &fd));
	unwind.child.pid = fork();
	if (unwind.child.pid == 0)
		crash(pair[1], fd);
	close_fd(&fd);
	close_fd(&pair[1]);
	unwind.child.fd = pair[0];
	OK(loop_add(b.modules.state.loop, pair[0], child_on_readable, &unwind.child,
		    &unwind.child.source));
	OK(waitid(P_PID, (id_t)unwind.child.pid, &ended, WEXITED | WNOWAIT));
	children_reap(&b.modules.children);
	ck_assert_int_eq(unwind.child.pid, 0);
	/* The pid could not belong to another process yet, so a kill would have hit this child. */
	ck_assert(existed_at_message);
	/* Its death counts for the file that it was reading. */
	ck_assert_ptr_nonnull(b.modules.quarantine.table);
	ck_assert_uint_eq(b.modules.quarantine.table->deaths, 1);
}

TEST(a_child_that_ends_before_ready_ends_the_broker_unless_another_has_worked)
{
	for (int i = 0; i < 5; i++) {
		unwind.child.pid = fork();
		if (unwind.child.pid == 0)
			_exit(1);
		unwind.child.started_ns = clock_mono_ns();
		while (unwind.child.pid != 0)
			children_reap(&b.modules.children);
		ck_assert(!b.modules.state.start_failed);
		ck_assert_uint_eq(unwind.child.failures, (unsigned)i + 1);
	}
	ck_assert_uint_gt(unwind.child.restart_ns, clock_mono_ns());
	b.modules.children.has_worked[CHILD_UNWIND] = false;
	unwind.child.pid = fork();
	if (unwind.child.pid == 0)
		_exit(1);
	while (unwind.child.pid != 0)
		children_reap(&b.modules.children);
	ck_assert(b.modules.state.start_failed);
}

static int32_t other_ended; /* the last process that on_other_ended() was called for */

static void on_other_ended(void *ctx, int32_t pid, int status, const struct rusage *usage)
{
	(void)ctx;
	(void)status;
	(void)usage;
	other_ended = pid;
}

static pid_t fork_and_reap(bool is_own)
{
	const pid_t pid = fork();
	siginfo_t ended;

	if (pid == 0)
		_exit(0);
	if (is_own)
		forks_add(pid);
	OK(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT));
	children_reap(&b.modules.children);
	ck_assert_int_eq(kill(pid, 0), -1);
	ck_assert(!forks_have(pid));
	return pid;
}

/* It had forked before it executed sentry-profd, or is an orphan of process 1. */
TEST(a_child_that_the_broker_has_not_forked_is_only_reaped)
{
	b.modules.children.events.other_ended = on_other_ended;
	other_ended = 0;
	(void)fork_and_reap(false);
	ck_assert_int_eq(other_ended, 0);
	ck_assert_int_eq(fork_and_reap(true), other_ended);
}

/* The process has not ended, so no line says that signal 9 has ended it. */
TEST(a_child_that_cannot_be_killed_is_replaced)
{
	const pid_t pid = make_sleeper();

	log_capture_begin();
	unwind.child.pid = pid;
	unwind.child.state = CHILD_KILLED;
	unwind.child.killed_ns = 0;
	children_check_killed(&b.modules.children);
	ck_assert_uint_eq(log_capture_end("hung in the kernel: starting it again"), 1);
	ck_assert_int_eq(unwind.child.pid, 0);
	ck_assert_uint_eq(unwind.child.failures, 1);
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
