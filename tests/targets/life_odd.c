/*
 * What few programs do, each a number of times beside a thread that calculates.
 *
 * Usage: life_odd WHAT N
 *   parent   makes siblings: CLONE_PARENT. The parent is this program, and who
 *            says "ready" its child
 *   clone3   makes children with a pidfd, with and without a signal
 *   untraced makes threads by CLONE_UNTRACED that live for a while
 *   vfork    a child of vfork(2) calculates for long, then runs a program
 *   spawns   posix_spawn(3) by eight threads at once
 *   seize    traces a child of its own, by PTRACE_SEIZE
 *   read     two processes read each other's memory; both are to be profiled
 *   leader   the main thread ends; then another runs the program anew
 *   hidden   sees no /proc (chroot(2)), is not dumpable, and nobody's; by root
 */
#include "life.h"

#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

static char *self;
static long rounds;

__attribute__((noreturn)) static void be_a_child(long n)
{
	run_for((uint64_t)(n * 37123 % 500000));
	_exit(is_traced() ? 1 : 7);
}

static void expect(const char *what, pid_t pid, int options)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, options) != pid)
		wrong("%s: %s", what, strerror(errno));
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
		wrong("%s: status %#x", what, (unsigned)status);
}

/* With flags of clone(2), like fork. */
static pid_t clone_of(uint64_t flags, int signal, int *pidfd)
{
	struct clone_args args = {.flags = flags,
				  .exit_signal = (uint64_t)signal,
				  .pidfd = (uintptr_t)pidfd};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* Ends with the process that profits of it: its siblings are ours. */
static void make_siblings(void)
{
	for (long n = 0; n < rounds; n++) {
		pid_t pid = n % 2 == 0 ? (pid_t)syscall(SYS_clone,
							CLONE_PARENT | SIGCHLD,
							0, 0, 0, 0)
				       : clone_of(CLONE_PARENT, 0, NULL);

		if (pid == 0)
			be_a_child(n);
		must(pid > 0, "CLONE_PARENT");
		run_for(200000);
	}
}

static void parent(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		begin();
		start(calculate, NULL);
		make_siblings();
		_exit(7);
	}
	for (long n = 0; n <= rounds; n++)
		if (waitpid(-1, &status, __WALL) < 0 || !WIFEXITED(status) ||
		    WEXITSTATUS(status) != 7)
			wrong("a sibling: status %#x", (unsigned)status);
}

static void by_clone3(void)
{
	for (long n = 0; n < rounds; n++) {
		int pidfd = -1, signal = n % 2 == 0 ? SIGCHLD : 0;
		struct pollfd end = {.events = POLLIN};
		pid_t pid = clone_of(CLONE_PIDFD, signal, &pidfd);

		if (pid == 0)
			be_a_child(n);
		end.fd = pidfd;
		if (poll(&end, 1, -1) != 1)
			wrong("a pidfd: %s", strerror(errno));
		expect("clone3", pid, __WALL);
		(void)close(pidfd);
	}
}

static int untraced_thread(void *done)
{
	run_for(50000000);
	atomic_fetch_add((atomic_long *)done, 1);
	(void)syscall(SYS_exit, 0);
	return 0;
}

/* Of no library: it uses none of its functions that need a thread of it. */
static void untraced(void)
{
	static char stacks[4][65536] __attribute__((aligned(16)));
	static atomic_long done;
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			  CLONE_THREAD | CLONE_SYSVSEM | CLONE_UNTRACED;

	for (long n = 0; n < rounds; n++) {
		uint64_t since = now_ns();

		for (int i = 0; i < 4; i++)
			must(clone(untraced_thread, stacks[i] + 65536, flags,
				   &done) > 0,
			     "CLONE_UNTRACED");
		while (atomic_load(&done) < 4 * (n + 1))
			patience(since, "threads that are untraced");
		/* Their stacks are used until they are gone. */
		(void)usleep(2000);
	}
}

static void late_vfork(void)
{
	for (long n = 0; n < rounds; n++) {
		pid_t pid = vfork();

		if (pid == 0) {
			run_for((uint64_t)(n * 7919137 % 20000000));
			execl(self, self, "child", "1", NULL);
			_exit(127);
		}
		expect("vfork", pid, 0);
	}
}

static void *spawn(void *unused)
{
	char child[] = "child", one[] = "1";
	char *argv[] = {self, child, one, NULL};
	pid_t pid;

	for (long n = 0; n < rounds; n++) {
		if (posix_spawn(&pid, self, NULL, NULL, argv, NULL) != 0)
			wrong("posix_spawn: %s", strerror(errno));
		else
			expect("posix_spawn", pid, 0);
	}
	return unused;
}

static void spawns(void)
{
	pthread_t threads[8];

	for (int i = 0; i < 8; i++)
		threads[i] = start(spawn, NULL);
	for (int i = 0; i < 8; i++)
		(void)pthread_join(threads[i], NULL);
}

static void expect_stop(pid_t pid, int want)
{
	int status = 0;

	if (waitpid(pid, &status, __WALL) != pid || status >> 8 != want)
		wrong("a tracee's stop: %#x, not %#x", (unsigned)status >> 8,
		      (unsigned)want);
}

static void seize_children(void)
{
	for (long n = 0; n < rounds; n++) {
		pid_t pid = fork();

		if (pid == 0) {
			for (;;)
				run_for(1000000);
		}
		must(ptrace(PTRACE_SEIZE, pid, NULL, PTRACE_O_TRACEEXIT) == 0,
		     "PTRACE_SEIZE");
		(void)ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
		expect_stop(pid, SIGTRAP | PTRACE_EVENT_STOP << 8);
		for (int i = 0; i < 3; i++) {
			(void)ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
			expect_stop(pid, SIGTRAP);
		}
		(void)kill(pid, SIGTERM);
		(void)ptrace(PTRACE_CONT, pid, NULL, NULL);
		expect_stop(pid, SIGTERM);
		(void)ptrace(PTRACE_CONT, pid, NULL, SIGTERM);
		expect_stop(pid, SIGTRAP | PTRACE_EVENT_EXIT << 8);
		(void)ptrace(PTRACE_CONT, pid, NULL, NULL);
		if (waitpid(pid, NULL, 0) != pid)
			wrong("a tracee's end: %s", strerror(errno));
	}
}

/* The same memory at the same place, and other bytes in it. */
static void read_the_other(void)
{
	static uint8_t own[65536], others[65536];
	struct iovec to = {others, sizeof(others)}, from = {own, sizeof(own)};
	int there[2], back[2];
	pid_t other;
	bool first;

	must(pipe(there) == 0 && pipe(back) == 0, "pipe");
	other = fork();
	first = other != 0;
	if (!first)
		other = getppid();
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	memset(own, first ? 1 : 2, sizeof(own));
	if (first)
		begin();
	must(write(first ? there[1] : back[1], "", 1) == 1 &&
		     read(first ? back[0] : there[0], others, 1) == 1,
	     "a pipe");
	start(calculate, NULL);
	for (long n = 0; n < rounds; n++) {
		memset(others, 0, sizeof(others));
		if (process_vm_readv(other, &to, 1, &from, 1, 0) !=
			    (ssize_t)sizeof(others) ||
		    others[0] != (first ? 2 : 1) ||
		    memcmp(others, others + 1, sizeof(others) - 1) != 0)
			wrong("process_vm_readv: %s", strerror(errno));
	}
	if (write(first ? there[1] : back[1], "", 1) != 1 ||
	    read(first ? back[0] : there[0], others, 1) != 1)
		wrong("a pipe");
	if (!first)
		_exit(n_wrong == 0 ? 7 : 1);
	expect("the other", other, 0);
}

static void *run_anew(void *unused)
{
	char number[24], path[64], text[256];
	const char *state = NULL;
	uint64_t since = now_ns();

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	do {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);

		(void)close(fd);
		text[n < 0 ? 0 : n] = '\0';
		state = strrchr(text, ')');
		patience(since, "the main thread's end");
	} while (state == NULL || state[2] != 'Z');
	run_for((uint64_t)(rounds * 7919 % 30000000));
	(void)snprintf(number, sizeof(number), "%ld", rounds - 1);
	execl(self, self, "leader", number, "again", NULL);
	give_up("exec");
	return unused;
}

__attribute__((noreturn)) static void leader(void)
{
	if (getpid() != thread_number())
		give_up("exec has made another thread the main one");
	if (rounds == 0) {
		printf("done\n");
		exit(EXIT_SUCCESS);
	}
	start(calculate, NULL);
	start(run_anew, NULL);
	run_for(1000000);
	pthread_exit(NULL);
}

static void hidden(void)
{
	const uid_t nobody = 65534;

	must(chroot("/usr") == 0 && chdir("/") == 0, "chroot");
	for (long n = 0; n < rounds; n++) {
		int want = n < rounds / 2 ? (int)(n % 2) : 0;

		/* A change of the user ID clears it as well. */
		if (n == rounds / 2)
			must(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 &&
				     setresuid(nobody, nobody, nobody) == 0,
			     "setresuid");
		else if (n < rounds / 2)
			(void)prctl(PR_SET_DUMPABLE, want, 0, 0, 0);
		if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != want)
			wrong("dumpable is not %d", want);
		if (access("/proc/self", F_OK) == 0)
			wrong("there is a /proc");
		(void)usleep(1000);
	}
	printf("user %u\n", getuid());
}

int main(int argc, char **argv)
{
	static const struct {
		const char *what;
		void (*run)(void);
	} kinds[] = {
		{"clone3", by_clone3},	   {"untraced", untraced},
		{"vfork", late_vfork},	   {"spawns", spawns},
		{"seize", seize_children}, {"hidden", hidden},
	};

	if (argc < 3)
		return 2;
	self = argv[0];
	rounds = strtol(argv[2], NULL, 10);
	if (strcmp(argv[1], "child") == 0)
		be_a_child(rounds);
	if (strcmp(argv[1], "leader") == 0) {
		if (argc == 3)
			begin();
		leader();
	}
	if (strcmp(argv[1], "parent") == 0)
		parent();
	if (strcmp(argv[1], "read") == 0)
		read_the_other();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].what) != 0)
			continue;
		begin();
		start(calculate, NULL);
		kinds[i].run();
	}
	printf("rounds %ld\n", rounds);
	return finish();
}
