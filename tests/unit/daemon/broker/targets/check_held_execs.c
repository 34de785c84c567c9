/* What the broker decides about processes that capture holds at their exec. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/targets/held_execs.h"
#include "daemon/msg/msg_capture.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

static struct broker b;
static int capture_fd;

static void set_up(void)
{
	int pair[2];

	build_broker(&b);
	OK(ipc_pair(pair));
	b.modules.children.capture.children = &b.modules.children;
	b.modules.children.capture.type = &child_types[CHILD_CAPTURE];
	b.modules.children.capture.fd = pair[0];
	capture_fd = pair[1];
	b.modules.targets.leak_check = &b.modules.leak_check;
}

static void tear_down(void)
{
	held_execs_clear(&b.modules.targets);
	close_fd(&b.modules.children.capture.fd);
	close_fd(&capture_fd);
}

static void check_decision(int32_t pid, enum exec_decision decision)
{
	struct ipc_message m;
	const struct msg_exec_decided *decided = (const void *)m.bytes;

	ck_assert_int_eq(ipc_recv(capture_fd, &m), 1);
	ck_assert_uint_eq(decided->h.type, MSG_EXEC_DECIDED);
	ck_assert_int_eq(decided->pid, pid);
	ck_assert_uint_eq(decided->decision, decision);
	ck_assert_uint_eq(b.modules.targets.held_execs.n, 0);
}

FIXTURE(set_up, tear_down)

TEST(without_the_check_all_programs_go_on)
{
	b.modules.targets.leak_check = NULL;
	held_execs_ask(&b.modules.targets, getpid());
	check_decision(getpid(), EXEC_GOES_ON);
}

TEST(a_target_that_is_attached_all_the_same_goes_on)
{
	struct instance instance = {
		.targets = &b.modules.targets,
		.pid = getpid(),
		.config.leak_check = LEAK_CHECK_ATTACH,
	};
	struct instance *list[] = {&instance};

	b.modules.targets.instances = list;
	b.modules.targets.n_instances = 1;
	held_execs_ask(&b.modules.targets, getpid());
	check_decision(getpid(), EXEC_GOES_ON);
	b.modules.targets.n_instances = 0;
}

/* Nothing can be asked about a process that no process traces: capture does not hold it any more.
 */
TEST(a_process_that_is_not_held_is_left)
{
	held_execs_ask(&b.modules.targets, getpid());
	check_decision(getpid(), EXEC_LEFT);
}

TEST(a_process_that_has_ended_is_left)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	held_execs_ask(&b.modules.targets, pid);
	check_decision(pid, EXEC_LEFT);
}
