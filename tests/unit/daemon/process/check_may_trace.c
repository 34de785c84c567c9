/* Each test asks for a peer, a process of USER and GROUP, whether it may trace another process. */
#include "daemon/process/may_trace.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/process/process.h"
#include "lib/base/small_file.h"
#include "tests/unit/suite.h"

#define USER  "--reuid=60001"
#define GROUP "--regid=60001"

static struct peer peer;
static int32_t process;

static bool is_sleep(int32_t pid)
{
	struct process look;

	(void)process_look(pid, &look);
	close_fd(&look.pidfd);
	return strcmp(look.comm, "sleep") == 0;
}

/*
 * Runs a program with setpriv(1), its options and perhaps a command that executes it; returns its
 * pid when it is the program.
 */
static int32_t start(const char *const *options)
{
	const char *argv[16] = {"setpriv", "--clear-groups"};
	size_t n = 2;
	int32_t pid;

	while (*options != NULL)
		argv[n++] = *options++;
	argv[n++] = "sleep";
	argv[n] = "1000";
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		execvp(argv[0], (char **)(uintptr_t)argv);
		_exit(127);
	}
	do
		ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
	while (!is_sleep(pid));
	return pid;
}

#define START(...) start((const char *const[]){__VA_ARGS__, NULL})

static void end(int32_t *pid)
{
	if (*pid > 0 && kill(*pid, SIGKILL) == 0)
		(void)waitpid(*pid, NULL, 0);
	*pid = 0;
}

static void set_peer(int32_t pid)
{
	peer = (struct peer){.pid = pid};
	/* It may be in the middle of its exec, in which its name changes first. */
	while (!peer_look(&peer))
		;
	peer.uid = peer.credentials.ids.uid[IDS_EFFECTIVE];
	peer.gid = peer.credentials.ids.gid[IDS_EFFECTIVE];
}

/* Needs root. */
static void set_up(void)
{
	process = 0;
	set_peer(START(USER, GROUP));
}

static void tear_down(void)
{
	end(&peer.pid);
	end(&process);
}

FIXTURE(set_up, tear_down)

TEST(a_process_of_the_same_user_and_group)
{
	process = START(USER, GROUP);
	ck_assert(may_trace(&peer, process));
}

TEST(another_group_or_user)
{
	process = START(USER, "--regid=60002");
	ck_assert(!may_trace(&peer, process));
	end(&peer.pid);
	set_peer(START(USER, "--regid=60002"));
	ck_assert(may_trace(&peer, process));
	end(&process);
	process = START("--reuid=60002", "--regid=60002");
	ck_assert(!may_trace(&peer, process));
}

TEST(a_real_user_that_is_another_one)
{
	process = START(GROUP, "--euid=60001", "--ruid=0");
	ck_assert(!may_trace(&peer, process));
}

TEST(a_capability_that_the_peer_lacks)
{
	process = START(USER, GROUP, "--inh-caps=+net_raw", "--ambient-caps=+net_raw");
	ck_assert(!may_trace(&peer, process));
	end(&peer.pid);
	set_peer(
		START(USER, GROUP, "--inh-caps=+net_raw,+chown", "--ambient-caps=+net_raw,+chown"));
	ck_assert(may_trace(&peer, process));
}

/* As of rootless containers. */
TEST(a_user_namespace_of_the_user)
{
	process = START(USER, GROUP, "unshare", "--user");
	ck_assert(may_trace(&peer, process));
}

/* Returns the first child of a process; 0: it has none yet. */
static int32_t child_of(int32_t pid)
{
	char path[64], text[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	OK(small_file_read(AT_FDCWD, path, text, sizeof(text)));
	return (int32_t)strtol(text, NULL, 10);
}

/* As of containers: processes of the host are none of a container's business. */
TEST(a_pid_namespace_below_that_of_the_peer)
{
	const struct peer outer = peer;
	int32_t wrapper = fork();

	ck_assert_int_ge(wrapper, 0);
	if (wrapper == 0) {
		execlp("unshare", "unshare", "--pid", "--fork", "--kill-child", "setpriv", USER,
		       GROUP, "--clear-groups", "sleep", "1000", NULL);
		_exit(127);
	}
	do {
		ck_assert_int_eq(waitpid(wrapper, NULL, WNOHANG), 0);
		process = child_of(wrapper);
	} while (process == 0 || !is_sleep(process));
	ck_assert(may_trace(&outer, process));
	set_peer(process);
	ck_assert(!may_trace(&peer, outer.pid));
	end(&process);
	end(&wrapper);
	peer = outer;
}

TEST(a_peer_that_is_another_process_by_now)
{
	process = START(USER, GROUP);
	peer.start_ticks++;
	ck_assert(!may_trace(&peer, process));
}

TEST(a_process_that_is_gone)
{
	int32_t pid = process = START(USER, GROUP);

	end(&process);
	ck_assert(!may_trace(&peer, pid));
}
