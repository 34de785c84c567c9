/* What a child said before it ended, and how its end is judged. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/reap.h"
#include "daemon/broker/children/socket.h"
#include "daemon/broker/files/blame.h"
#include "lib/base/clock.h"
#include "lib/base/loop.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct unwind unwind;
static bool was_there; /* the process, when its last message was read */

static void note(struct child *child, struct ipc_message *m)
{
	(void)m;
	was_there = kill(child->pid, 0) == 0;
	child_fail(child, "sends a message that is none");
}

static const struct child_type type = {.kind = CHILD_UNWIND, .name = "unwind", .on_message = note};

static void set_up(void)
{
	memset(&b, 0, sizeof(b));
	OK(loop_new(&b.loop));
	OK(files_new(b.loop, &b.files));
	b.capture.fd = -1;
	b.has_worked[CHILD_UNWIND] = true;
	unwind = (struct unwind){.link_fd = -1, .uid = 7};
	unwind.child = (struct child){.broker = &b,
				      .type = &type,
				      .fd = -1,
				      .state = CHILD_READY,
				      .started_ns = clock_mono_ns()};
	b.unwinds[b.n_unwinds++] = &unwind;
	was_there = false;
}

static void tear_down(void)
{
	blame_end(&unwind);
	free(b.deadly);
	files_free(b.files);
	loop_free(b.loop);
}

/* Says something, and crashes while it reads the file that has number 1. */
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

TEST(nonsense_before_a_crash)
{
	siginfo_t ended;
	int pair[2], fd;

	OK(ipc_pair(pair));
	OK(blame_begin(&unwind, &fd));
	unwind.child.pid = fork();
	if (unwind.child.pid == 0)
		crash(pair[1], fd);
	close_fd(&fd);
	close_fd(&pair[1]);
	unwind.child.fd = pair[0];
	OK(loop_add(b.loop, pair[0], child_on_readable, &unwind.child, &unwind.child.source));
	OK(waitid(P_PID, (id_t)unwind.child.pid, &ended, WEXITED | WNOWAIT));
	children_reap(&b);
	ck_assert_int_eq(unwind.child.pid, 0);
	/* Its pid was no other process's yet: it may have been killed. */
	ck_assert(was_there);
	/* And it has died at its file, whatever it said before. */
	ck_assert_ptr_nonnull(b.deadly);
	ck_assert_uint_eq(b.deadly->deaths, 1);
}

/* Where another has worked, this one is tried again, after a while. */
TEST(one_that_ends_before_it_was_ready)
{
	for (int i = 0; i < 5; i++) {
		unwind.child.pid = fork();
		if (unwind.child.pid == 0)
			_exit(1);
		unwind.child.started_ns = clock_mono_ns();
		while (unwind.child.pid != 0)
			children_reap(&b);
		ck_assert(!b.failed);
		ck_assert_uint_eq(unwind.child.failures, (unsigned)i + 1);
	}
	ck_assert_uint_gt(unwind.child.restart_ns, clock_mono_ns());
	b.has_worked[CHILD_UNWIND] = false;
	unwind.child.pid = fork();
	if (unwind.child.pid == 0)
		_exit(1);
	while (unwind.child.pid != 0)
		children_reap(&b);
	ck_assert(b.failed);
}
