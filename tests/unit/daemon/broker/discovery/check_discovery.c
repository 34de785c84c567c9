/* Events of the kernel about a target: a process of the test that takes other ids. */
#include "daemon/broker/discovery/discovery.h"

#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/process/process.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/process/owned.h"
#include "tests/unit/suite.h"

#define USER 60001

static struct broker b;
static struct instance i;
static struct instance *list[] = {&i};
static struct owned process;

static void *wait_forever(void *ctx)
{
	for (;;)
		(void)pause();
	return ctx;
}

static int take(char step)
{
	pthread_t thread;

	switch (step) {
	case 'n': /* as a container of the user's */
		return setgroups(0, NULL) != 0 || setresgid(USER, USER, USER) != 0 ||
		       setresuid(USER, USER, USER) != 0 || unshare(CLONE_NEWUSER) != 0;
	case 'g': /* to the second group of the container */
		return setresgid(1, 1, 1) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0;
	case 'u':
		return setresuid(USER, USER, USER);
	case 'r':
		return prctl(PR_SET_NAME, "renamed");
	case 'l': /* the leader exits, without an answer */
		return pthread_create(&thread, NULL, wait_forever, NULL) != 0 ||
		       syscall(SYS_exit, 0) != 0;
	default:
		return 1;
	}
}

static void write_map(const char *name, const char *text)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", process.pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

static void set_up(void)
{
	build_broker(&b);
	OK(loop_new(&b.modules.state.loop));
	OK(discovery_new(&b.modules.targets, &b.modules.discovery));
	OK(discovery_start(b.modules.discovery));
	owned_start(&process, take);
	b.modules.targets.instances = list;
	b.modules.targets.n_instances = 1;
}

static void tear_down(void)
{
	owned_end(&process);
	close_fd(&i.pidfd);
	discovery_free(b.modules.discovery);
	loop_free(b.modules.state.loop);
}

static void begin_run(void)
{
	struct process_identity now;

	ck_assert(process_identity(process.pid, &now));
	i = (struct instance){.pid = process.pid,
			      .start_ticks = now.start_ticks,
			      .program_hash = now.program_hash};
	i.pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
	(void)build_run(&b, &i, NULL);
}

/* Waits until the run has ended. The scans of /proc are a minute apart. */
static void wait_ms(uint64_t ms)
{
	const uint64_t end_ns = clock_mono_ns() + ms * NS_PER_MS;

	do {
		(void)usleep(10000);
		discovery_check(b.modules.discovery);
	} while (run_is_open(i.run) && clock_mono_ns() < end_ns);
}

FIXTURE(set_up, tear_down)

/* The ids of a user, or only another group. */
static const char steps[] = "ug";

TESTS(a_change_of_ids_is_looked_at_at_once, getuid() == 0 ? sizeof(steps) - 1 : 0)
{
	if (!discovery_has_connector(b.modules.discovery))
		return;
	if (steps[_i] == 'g') {
		owned_go(&process, 'n');
		write_map("uid_map", "0 60001 1");
		write_map("gid_map", "0 60001 1\n1 60011 1");
	}
	begin_run();
	wait_ms(500);
	ck_assert(run_is_open(i.run));
	owned_go(&process, steps[_i]);
	wait_ms(10000);
	ck_assert(!run_is_open(i.run));
}

static struct section_config one = {.name = "one", .comm = "no such name"};

static void check_for(uint64_t ms)
{
	const uint64_t end_ns = clock_mono_ns() + ms * NS_PER_MS;

	while (i.life == INSTANCE_LIVES && clock_mono_ns() < end_ns) {
		(void)!loop_run_once(b.modules.state.loop, 10);
		discovery_check(b.modules.discovery);
	}
}

/* A process that its section would not match any more. */
static void begin_known(void)
{
	begin_run();
	i.origin = INSTANCE_OF_SECTION;
	i.config = one;
	b.modules.state.options.config.sections = &one;
	b.modules.state.options.config.n_sections = 1;
	discovery_config_changed(b.modules.discovery);
}

/* As by the scan after lost events, and by that of each minute. */
TEST(a_change_that_no_event_has_reported_is_found)
{
	uint64_t before;

	begin_known();
	check_for(300);
	ck_assert_int_eq(i.life, INSTANCE_LIVES);
	before = i.program_hash;
	owned_go(&process, 'r');
	discovery_config_changed(b.modules.discovery);
	check_for(300);
	ck_assert_uint_ne(i.program_hash, before);
}

static void let_leader_exit(void)
{
	struct process now;

	ck_assert_int_eq(write(process.to, "l", 1), 1);
	do {
		ck_assert_int_eq(process_look(process.pid, &now), PROCESS_OK);
		close_fd(&now.pidfd);
	} while (!now.leader_has_exited);
}

static const struct {
	enum instance_wish wish;
	bool is_operator;
	enum instance_life life;
	enum instance_origin origin;
} left[] = {
	{INSTANCE_WISH_ATTACHED, false, INSTANCE_REMOVED, INSTANCE_OF_SECTION},
	{INSTANCE_WISH_ATTACHED, true, INSTANCE_CHANGED, INSTANCE_ATTACHED},
	{INSTANCE_WISH_DETACHED, false, INSTANCE_CHANGED, INSTANCE_LEFT_SECTION},
};

/* A reload leaves processes that were attached or detached to discovery. */
TESTS(a_process_without_its_leader_leaves_a_removed_section, array_size(left))
{
	let_leader_exit();
	begin_known();
	i.wish = left[_i].wish;
	i.asker = (struct instance_asker){.is_set = true, .is_operator = left[_i].is_operator};
	discovery_recheck(b.modules.discovery, i.pid);
	check_for(300);
	ck_assert_int_eq(i.life, INSTANCE_LIVES);
	b.modules.state.options.config.n_sections = 0;
	discovery_config_changed(b.modules.discovery);
	discovery_recheck(b.modules.discovery, i.pid);
	check_for(10000);
	ck_assert_int_eq(i.life, left[_i].life);
	ck_assert_int_eq(i.origin, left[_i].origin);
}
