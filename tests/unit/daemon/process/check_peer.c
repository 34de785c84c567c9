/*
 * When a connection speaks for the process that connected. The tests read the peer of a process as
 * if it had connected, and let it change itself or execute a program. They need root.
 */
#include "daemon/process/peer.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/process/process.h"
#include "tests/unit/suite.h"

#define USER 60001

static struct peer peer;
static int wire; /* a byte from here lets the process go on, and the process answers with one */

static void become_user(void)
{
	OK(setresgid(USER, USER, USER));
	OK(setresuid(USER, USER, USER));
}

/* As a process is that a user has started. */
static void be_of_user(void)
{
	become_user();
	OK(prctl(PR_SET_DUMPABLE, 1));
}

/* Starts a process that calls before(), is the peer then, and calls after(). */
static void start(void (*before)(void), void (*after)(void))
{
	int ends[2];
	char byte = 0;

	OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	wire = ends[0];
	peer = (struct peer){.pid = fork()};
	ck_assert_int_ge(peer.pid, 0);
	if (peer.pid == 0) {
		before();
		ck_assert_int_eq(write(ends[1], &byte, 1), 1);
		ck_assert_int_eq(read(ends[1], &byte, 1), 1);
		after();
		ck_assert_int_eq(write(ends[1], &byte, 1), 1);
		for (;;)
			(void)pause();
	}
	close(ends[1]);
	ck_assert_int_eq(read(wire, &byte, 1), 1);
	ck_assert(peer_look(&peer));
	peer.uid = peer.credentials.ids.uid[IDS_EFFECTIVE];
	peer.gid = peer.credentials.ids.gid[IDS_EFFECTIVE];
}

/* Returns when after() has returned or has executed a program, which closes the wire. */
static void go_on(void)
{
	char byte = 0;

	ck_assert_int_eq(write(wire, &byte, 1), 1);
	ck_assert_int_ge(read(wire, &byte, 1), 0);
}

static void tear_down(void)
{
	OK(kill(peer.pid, SIGKILL));
	ck_assert_int_eq(waitpid(peer.pid, NULL, 0), peer.pid);
	close(wire);
}

FIXTURE(NULL, tear_down)

static void change_name(void)
{
	OK(prctl(PR_SET_NAME, "another"));
}

static void do_nothing(void)
{
}

TEST(the_name_of_a_program_does_not_count)
{
	start(be_of_user, change_name);
	ck_assert(peer_speaks(&peer));
	go_on();
	ck_assert(peer_speaks(&peer));
}

TEST(a_program_that_changes_its_user)
{
	start(do_nothing, become_user);
	go_on();
	ck_assert(peer_speaks(&peer));
}

static void execute(const char *program)
{
	execlp(program, "sleep", "1000", NULL);
	abort();
}

static void execute_sleep(void)
{
	execute("sleep");
}

TEST(an_exec_of_a_program_with_the_same_credentials)
{
	uint64_t stack;

	start(be_of_user, execute_sleep);
	stack = peer.start_stack;
	go_on();
	ck_assert(peer_speaks(&peer));
	ck_assert(peer_look(&peer));
	ck_assert_uint_ne(peer.start_stack, stack);
}

static char copy[] = "/tmp/check_peer.XXXXXX";

static void execute_copy(void)
{
	execute(copy);
}

/* Makes a copy of sleep(1) that belongs to root. */
static void make_copy(mode_t mode)
{
	int from = open("/bin/sleep", O_RDONLY | O_CLOEXEC), to = mkostemp(copy, O_CLOEXEC);
	struct stat st;

	ck_assert_int_ge(from, 0);
	ck_assert_int_ge(to, 0);
	OK(fstat(from, &st));
	ck_assert_int_eq(sendfile(to, from, NULL, (size_t)st.st_size), st.st_size);
	OK(fchmod(to, mode));
	close(from);
	close(to);
}

static const mode_t modes[] = {04755, 02755, 0711};

/* A set-user-ID and a set-group-ID program; and one that the user may not read. */
TESTS(an_exec_of_a_program_with_other_credentials, array_size(modes))
{
	make_copy(modes[_i]);
	start(be_of_user, execute_copy);
	ck_assert(peer_speaks(&peer));
	go_on();
	OK(unlink(copy));
	ck_assert(!peer_speaks(&peer));
}

/* Before the daemon has accepted the connection. */
TEST(a_process_with_other_ids_than_at_connect)
{
	start(do_nothing, do_nothing);
	ck_assert(peer_speaks(&peer));
	peer.uid = USER;
	ck_assert(!peer_speaks(&peer));
	peer.uid = 0;
	peer.gid = USER;
	ck_assert(!peer_speaks(&peer));
}

/* Their line stands before that of the capabilities. */
static void join_groups(void)
{
	gid_t groups[1000];

	for (size_t i = 0; i < array_size(groups); i++)
		groups[i] = (gid_t)(1000000000 + i);
	OK(setgroups(array_size(groups), groups));
}

TEST(root_with_many_groups_is_an_operator)
{
	const struct peer_groups none = {PEER_NO_GROUP, PEER_NO_GROUP};
	struct peer own;
	int ends[2];

	start(do_nothing, do_nothing);
	join_groups();
	OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	OK(peer_of(ends[0], 0, &none, &own));
	ck_assert_int_eq(own.pid, getpid());
	ck_assert(own.is_operator);
	close(ends[0]);
	close(ends[1]);
}

TEST(another_process_of_the_same_pid)
{
	start(do_nothing, do_nothing);
	peer.start_ticks++;
	ck_assert(!peer_speaks(&peer));
}
