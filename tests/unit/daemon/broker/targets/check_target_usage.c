#include "daemon/broker/children/children.h"
#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/target_usage.h"
#include "daemon/msg/msg_unwind.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct instance instance;
static struct unwind unwind;
static int unwinds_end;
static pid_t pid;

/* A profiled process that sleeps, and an unwind process, in whose place the test is. */
static void set_up(void)
{
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		for (;;)
			(void)pause();
	build_broker(&b);
	instance = (struct instance){.pid = pid};
	instance.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	ck_assert_int_ge(instance.pidfd, 0);
	unwinds_end = build_unwind(&b, &unwind);
	build_run(&b, &instance, &unwind);
}

static void end_process(void)
{
	OK(kill(pid, SIGKILL));
	OK(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT));
}

static void tear_down(void)
{
	end_process();
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	close_fd(&instance.pidfd);
	close_fd(&unwind.child.fd);
	close_fd(&unwinds_end);
}

static uint64_t anonymous_bytes; /* of the last message to unwind */

/* Checks as if a second had passed. Returns the memory_bytes sent to unwind; 0: no message. */
static uint64_t reported_bytes(void)
{
	const struct msg_usage *usage;
	struct ipc_message m;

	instance.run->usage.time_ns = 1;
	target_usage_check(&b.modules.targets);
	if (!unwind.usage_unanswered)
		return 0;
	unwind.usage_unanswered = false;
	ck_assert_int_eq(ipc_recv(unwinds_end, &m), 1);
	usage = (const void *)m.bytes;
	ck_assert_uint_eq(usage->n, 1);
	ck_assert_uint_eq(usage->v[0].target, instance.run->id);
	ck_assert_uint_ne(usage->v[0].memory_bytes, 0);
	ck_assert_uint_ne(usage->v[0].anonymous_bytes, 0);
	anonymous_bytes = usage->v[0].anonymous_bytes;
	return usage->v[0].memory_bytes;
}

FIXTURE(set_up, tear_down)

TEST(usage_is_read_from_a_file_that_stays_open)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	static const char text[] = "1000 77 30 1 0 1 0\n";
	struct run *run = instance.run;
	int fd;

	ck_assert_uint_ne(reported_bytes(), 0);
	ck_assert_int_gt(run->statm_fd, STDERR_FILENO);
	fd = suite_file(text);
	close_fd(&run->statm_fd);
	run->statm_fd = fd;
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(reported_bytes(), 77 * page);
		ck_assert_uint_eq(anonymous_bytes, 47 * page);
	}
	attach_retire(run);
	targets_sweep(&b.modules.targets);
	ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
}

TESTS(an_ended_process_is_not_reported, 2)
{
	const bool opened = _i == 1;

	if (opened)
		ck_assert_uint_ne(reported_bytes(), 0);
	end_process();
	ck_assert_uint_eq(reported_bytes(), 0);
	ck_assert(opened || instance.run->statm_fd < 0);
	close_fd(&instance.run->statm_fd);
}

TEST(usage_is_in_millionths_of_a_percent)
{
	static const struct {
		struct target_usage from, to;
		uint64_t millionths;
	} v[] = {
		{{1, 0}, {1000000001, 1000000000}, 100000000},
		{{1, 0}, {1000000001, 5000000}, 500000},
		{{1000, 7}, {3000, 5007}, 250000000},
		{{1, 7}, {2, 7}, 0},
		{{1, 7}, {2, 6}, 0},
		{{2, 7}, {2, 8}, 0},
		{{3, 7}, {2, 8}, 0},
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		ck_assert_uint_eq(target_usage_micropercent(&v[i].from, &v[i].to), v[i].millionths);
}
