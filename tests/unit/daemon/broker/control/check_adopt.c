#include "daemon/broker/control/adopt.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/instances.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct instance i;
static struct instance *list[1] = {&i};
static const struct peer admin = {.is_operator = true};
static struct peer user;
static struct control_answer answer;

/* The process of a section; it is a child of the test. */
static void set_up(void)
{
	const struct peer_groups no_groups = {PEER_NO_GROUP, PEER_NO_GROUP};
	const pid_t pid = fork();
	int pair[2];

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (pid == 0)
		(void)pause();
	build_broker(&b);
	b.parts.targets.instances = list;
	b.parts.targets.n_instances = 1;
	i = (struct instance){.targets = &b.parts.targets,
			      .pid = pid,
			      .uid = geteuid(),
			      .config.lifecycle = LIFECYCLE_MANUAL,
			      .is_sampled = true};
	/* The test itself, as a user without rights. */
	OK(ipc_pair(pair));
	OK(peer_of(pair[0], UINT32_MAX, &no_groups, &user));
	user.is_operator = false;
	close_fd(&pair[0]);
	close_fd(&pair[1]);
}

static void tear_down(void)
{
	OK(kill(i.pid, SIGKILL));
	ck_assert_int_eq(waitpid(i.pid, NULL, 0), i.pid);
}

FIXTURE(set_up, tear_down)

static uint32_t attach(const struct peer *peer)
{
	answer = (struct control_answer){.fd = -1};
	adopt_attach(&b.parts.targets, peer, i.pid, &answer);
	return answer.m.result;
}

/* Sections and operators come before users in the CPU budget. */
TEST(what_only_a_user_attaches_is_for_the_user)
{
	ck_assert_uint_eq(attach(&user), PROTOCOL_OK);
	ck_assert(instance_is_for_user(&i));
	ck_assert_uint_eq(attach(&user), PROTOCOL_RUNS_ALREADY);
	ck_assert(instance_is_for_user(&i));
	ck_assert_uint_eq(attach(&admin), PROTOCOL_RUNS_ALREADY);
	ck_assert(!instance_is_for_user(&i));
	/* It stays the operator's. */
	ck_assert_uint_eq(attach(&user), PROTOCOL_RUNS_ALREADY);
	ck_assert(!instance_is_for_user(&i));
}

TEST(what_a_section_profiles_is_not_for_a_user_who_attaches_it)
{
	i.is_started = true;
	ck_assert_uint_eq(attach(&user), PROTOCOL_RUNS_ALREADY);
	ck_assert(!instance_is_for_user(&i));
}

TEST(what_an_operator_wants_does_not_wait_for_the_users_part)
{
	ck_assert_uint_eq(attach(&user), PROTOCOL_OK);
	instance_wait_for_budget(&i);
	ck_assert_uint_eq(attach(&user), PROTOCOL_RUNS_ALREADY);
	ck_assert_ptr_eq(adopt_for_recording(&b.parts.targets, &user, i.pid, &answer), &i);
	ck_assert_int_eq(i.obstacle, INSTANCE_OVER_BUDGET);
	ck_assert_uint_eq(i.run_delay_ns, INSTANCE_BUDGET_WAIT_NS);
	ck_assert_ptr_eq(adopt_for_recording(&b.parts.targets, &admin, i.pid, &answer), &i);
	ck_assert_int_eq(i.obstacle, INSTANCE_NO_OBSTACLE);
	ck_assert_uint_eq(i.run_delay_ns, 0);
	instance_wait_for_budget(&i);
	ck_assert_uint_eq(attach(&admin), PROTOCOL_RUNS_ALREADY);
	ck_assert_int_eq(i.obstacle, INSTANCE_NO_OBSTACLE);
}

/* Starts a process; traced, if it is not 0, is traced by it. */
static pid_t start_process(pid_t traced)
{
	const pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
		if (traced != 0)
			(void)ptrace(PTRACE_SEIZE, traced, NULL, NULL);
		for (;;)
			(void)pause();
	}
	while (traced != 0 && process_tracer(traced) != pid)
		(void)poll(NULL, 0, 1);
	return pid;
}

static bool child_is_for_user(void)
{
	const pid_t pid = start_process(0);
	struct instance *child;
	bool is_for_user;

	b.parts.children.capture.pid = start_process(pid);
	instance_add_child(&b.parts.targets, pid);
	child = instance_of_pid(&b.parts.targets, pid);
	ck_assert_ptr_nonnull(child);
	is_for_user = instance_is_for_user(child);
	OK(kill(b.parts.children.capture.pid, SIGKILL));
	OK(kill(pid, SIGKILL));
	return is_for_user;
}

/* --children: children of what a user has attached are no way around the user's part. */
TEST(a_child_is_for_the_user_of_its_parent)
{
	struct process look;
	struct instance *parent;

	build_broker(&b);
	b.parts.state.timer_hz = 101;
	ck_assert_int_le(process_look(getpid(), &look), PROCESS_TRACED);
	OK(instance_add_attached(&b.parts.targets, &look, INSTANCE_ATTACHED, &parent));
	ck_assert(!child_is_for_user());
	parent->user_attached = true;
	ck_assert(child_is_for_user());
	/* The parent has ended: another process of the same user was attached by the user. */
	parent->life = INSTANCE_ENDED;
	ck_assert(child_is_for_user());
	parent->uid++;
	for (size_t k = 1; k < b.parts.targets.n_instances; k++)
		b.parts.targets.instances[k]->user_attached = false;
	ck_assert(!child_is_for_user());
	for (size_t k = 0; k < b.parts.targets.n_instances; k++) {
		close_fd(&b.parts.targets.instances[k]->pidfd);
		free(b.parts.targets.instances[k]);
	}
	free(b.parts.targets.instances);
}
