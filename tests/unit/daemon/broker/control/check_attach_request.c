#include "daemon/broker/control/attach_request.h"

#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/owners.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/process/owned.h"
#include "tests/unit/daemon/process/stopped.h"
#include "tests/unit/suite.h"

#define USER 60001

/* poll(2), as the C library calls it: aarch64 has only ppoll(2). */
#ifdef SYS_poll
#define POLL SYS_poll
#else
#define POLL SYS_ppoll
#endif

static struct broker b;
static struct instance i;
static struct instance *list[2];
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
	list[0] = &i;
	b.modules.targets.instances = list;
	b.modules.targets.n_instances = 1;
	b.modules.targets.instances_size = array_size(list);
	i = (struct instance){.targets = &b.modules.targets,
			      .pid = pid,
			      .pidfd = (int)syscall(SYS_pidfd_open, pid, 0),
			      .config.lifecycle = LIFECYCLE_MANUAL,
			      .is_sampled = true};
	OK(owner_read(pid, &i.owner));
	/* The test itself, as a user without rights. */
	OK(ipc_pair(pair));
	OK(peer_of(pair[0], UINT32_MAX, &no_groups, &user));
	user.is_operator = false;
	ck_assert(peer_look(&user));
	close_fd(&pair[0]);
	close_fd(&pair[1]);
}

static void tear_down(void)
{
	OK(kill(i.pid, SIGKILL));
	ck_assert_int_eq(waitpid(i.pid, NULL, 0), i.pid);
	close_fd(&i.pidfd);
}

FIXTURE(set_up, tear_down)

static uint32_t attach(const struct peer *peer)
{
	answer = (struct control_answer){.fd = -1};
	attach_request_handle(&b.modules.targets, peer, i.pid, &answer);
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
	ck_assert_ptr_eq(attach_request_for_recording(&b.modules.targets, &user, i.pid, &answer),
			 &i);
	ck_assert_int_eq(i.obstacle, INSTANCE_OVER_BUDGET);
	ck_assert_uint_eq(i.run_delay_ns, INSTANCE_BUDGET_WAIT_NS);
	ck_assert_ptr_eq(attach_request_for_recording(&b.modules.targets, &admin, i.pid, &answer),
			 &i);
	ck_assert_int_eq(i.obstacle, INSTANCE_NO_OBSTACLE);
	ck_assert_uint_eq(i.run_delay_ns, 0);
	instance_wait_for_budget(&i);
	ck_assert_uint_eq(attach(&admin), PROTOCOL_RUNS_ALREADY);
	ck_assert_int_eq(i.obstacle, INSTANCE_NO_OBSTACLE);
}

/* A process of the peer's that takes the ids of another user. */
static int take(char step)
{
	(void)step;
	return setgroups(0, NULL) != 0 || setresgid(USER, USER, USER) != 0 ||
	       setresuid(USER, USER, USER) != 0;
}

/* Returns -EACCES if the user may not record the process. */
static int record(const void *pid)
{
	static struct instance *instances[1];

	b.modules.targets.instances = instances;
	b.modules.targets.n_instances = 0;
	b.modules.targets.instances_size = 1;
	(void)attach_request_for_recording(&b.modules.targets, &user, *(const int32_t *)pid,
					   &answer);
	return answer.m.result == PROTOCOL_DENIED ? -EACCES : 0;
}

/* The id of a new instance is made after the look at the rights, before that at the owner. */
TEST_IF(a_process_that_changes_during_the_request_is_refused, getuid() == 0)
{
	struct owned process;
	pid_t helper;

	owned_start(&process, take);
	helper = stopped_at(record, &process.pid, SYS_getrandom);
	OK(stopped_result(helper));
	helper = stopped_at(record, &process.pid, SYS_getrandom);
	owned_go(&process, 'u');
	ck_assert_int_eq(stopped_result(helper), -EACCES);
	owned_end(&process);
}

/* The same for the process of an instance. */
static int record_known(const void *known)
{
	(void)attach_request_for_recording(&b.modules.targets, &user,
					   ((const struct instance *)known)->pid, &answer);
	return answer.m.result == PROTOCOL_DENIED ? -EACCES : 0;
}

/* A process of a section; the poll(2) of its pidfd ends the look at the owner. */
TEST_IF(a_known_process_that_changes_during_the_request_is_refused, getuid() == 0)
{
	struct instance known;
	struct owned process;
	pid_t helper;

	owned_start(&process, take);
	known = i;
	known.pid = process.pid;
	known.pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
	OK(owner_read(process.pid, &known.owner));
	list[0] = &known;
	helper = stopped_at(record_known, &known, POLL);
	owned_go(&process, 'u');
	ck_assert_int_eq(stopped_result(helper), -EACCES);
	owned_end(&process);
	close_fd(&known.pidfd);
}

/* It belonged to another user when that user recorded it: now it is a new instance. */
TEST_IF(a_process_without_a_run_is_looked_at_again, getuid() == 0)
{
	struct instance *now;

	i.origin = INSTANCE_RECORDED;
	i.owner.uid = USER;
	i.owner.kind = OWNER_PLAIN;
	i.asker = (struct instance_asker){.is_set = true};
	i.n_recordings = 1;
	now = attach_request_for_recording(&b.modules.targets, &user, i.pid, &answer);
	ck_assert_int_eq(i.life, INSTANCE_REMOVED);
	ck_assert_ptr_nonnull(now);
	ck_assert_ptr_ne(now, &i);
	ck_assert_int_eq(now->asker.uid, user.uid);
	close_fd(&now->pidfd);
	free(now);
}

/* As a server that has taken other ids since its section matched it. */
TEST(an_attach_begins_with_the_owner_of_now)
{
	i.owner.kind = OWNER_PLAIN;
	i.owner.uid = USER;
	ck_assert_uint_eq(attach(&user), PROTOCOL_OK);
	ck_assert_uint_eq(i.owner_changes, 1);
	OK(owners_begin(&b.modules.targets, &i));
	ck_assert_int_eq(i.wish, INSTANCE_WISH_ATTACHED);
	ck_assert_int_eq(i.life, INSTANCE_LIVES);
}
