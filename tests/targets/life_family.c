/*
 * Processes and threads made in every way: what their parent sees of them, and
 * that nobody traces them.
 *
 * Usage: life_family N. Each way N times, beside a thread that calculates.
 */
#include "life.h"

#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define STACK 65536

static volatile int shared_word;
static int last_signal;
static char *self;

/* What a child does: its status is 7 if nobody traces it. */
static int child(void *arg)
{
	shared_word = shared_word + 1;
	run_for((uint64_t)(uintptr_t)arg);
	_exit(is_traced() ? 1 : 7);
}

static int exec_child(void *unused)
{
	(void)unused;
	execl(self, self, "child", NULL);
	_exit(127);
}

/* A signal that is no SIGCHLD, or none, for a child's end. */
static void on_end(int signal)
{
	last_signal = signal;
}

static pid_t by_clone(int flags, int (*function)(void *), void *arg)
{
	static char stack[STACK] __attribute__((aligned(16)));

	return clone(function, stack + STACK, flags, arg);
}

static pid_t by_spawn(void)
{
	char word[] = "child";
	char *argv[] = {self, word, NULL};
	pid_t pid;

	must(posix_spawn(&pid, self, NULL, NULL, argv, NULL) == 0,
	     "posix_spawn");
	return pid;
}

static pid_t by_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		(void)exec_child(NULL);
	return pid;
}

static pid_t by_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		(void)child(NULL);
	return pid;
}

static void *time_of(long n)
{
	return (void *)(uintptr_t)(n * 37 % 500000);
}

static void check_end(const char *way, pid_t pid, int options)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, options) != pid)
		wrong("%s: %s", way, strerror(errno));
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
		wrong("%s: status %#x", way, (unsigned)status);
}

/* Which memory a child has, and with what its end is told. */
static void clones(long n)
{
	int before = shared_word;

	check_end("clone of memory",
		  by_clone(CLONE_VM | SIGCHLD, child, time_of(n)), 0);
	if (shared_word != before + 1)
		wrong("memory is not shared");
	check_end("clone of files",
		  by_clone(CLONE_FILES | CLONE_FS | SIGCHLD, child, time_of(n)),
		  0);
	check_end("clone without a signal", by_clone(0, child, time_of(n)),
		  __WCLONE);
	check_end("clone of memory without a signal",
		  by_clone(CLONE_VM, child, time_of(n)), __WALL);
	last_signal = 0;
	check_end("clone with another signal",
		  by_clone(SIGUSR1, child, time_of(n)), __WCLONE);
	if (last_signal != SIGUSR1)
		wrong("signal %d for a child's end", last_signal);
	check_end("clone that asks to be traced",
		  by_clone(CLONE_PTRACE | SIGCHLD, child, time_of(n)), 0);
	check_end("clone that asks not to be",
		  by_clone(CLONE_UNTRACED | SIGCHLD, child, time_of(n)), 0);
	check_end("clone, vfork, exec",
		  by_clone(CLONE_VM | CLONE_VFORK | SIGCHLD, exec_child, NULL),
		  0);
}

/* It stops, is continued, single-stepped and ended by this process. */
static void trace_a_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)raise(SIGSTOP);
		run_for(10000);
		_exit(5);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
	    WSTOPSIG(status) != SIGSTOP)
		wrong("a tracee's stop: %#x", (unsigned)status);
	for (int i = 0; i < 5; i++)
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0 ||
		    waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
		    WSTOPSIG(status) != SIGTRAP)
			wrong("a tracee's step: %#x", (unsigned)status);
	(void)ptrace(PTRACE_CONT, pid, NULL, NULL);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != 5)
		wrong("a tracee's end: %#x", (unsigned)status);
}

/* A grandchild whose parent ends comes to this process, the subreaper. */
static void adopt_an_orphan(void)
{
	int fds[2], status;
	pid_t orphan = 0, pid;

	must(pipe(fds) == 0, "pipe");
	pid = fork();
	if (pid == 0) {
		orphan = fork();
		if (orphan == 0) {
			(void)usleep(500);
			(void)child(NULL);
		}
		(void)!write(fds[1], &orphan, sizeof(orphan));
		_exit(3);
	}
	must(read(fds[0], &orphan, sizeof(orphan)) == (ssize_t)sizeof(orphan),
	     "read");
	(void)close(fds[0]);
	(void)close(fds[1]);
	if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 3)
		wrong("an orphan's parent: %#x", (unsigned)status);
	check_end("an orphan", orphan, 0);
}

/* A child that dies with its parent, and one that is killed. */
static void ends(void)
{
	int fds[2], status;
	pid_t pid, dependent;
	char byte;

	must(pipe2(fds, O_CLOEXEC) == 0, "pipe");
	pid = fork();
	if (pid == 0) {
		dependent = fork();
		if (dependent == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)!write(fds[1], "", 1);
			for (;;)
				(void)pause();
		}
		(void)!read(fds[0], &byte, 1);
		(void)!write(fds[1], &dependent, sizeof(dependent));
		_exit(0);
	}
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	must(read(fds[0], &dependent, sizeof(dependent)) ==
		     (ssize_t)sizeof(dependent),
	     "read");
	(void)close(fds[0]);
	(void)close(fds[1]);
	if (waitpid(dependent, &status, 0) != dependent ||
	    !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		wrong("PR_SET_PDEATHSIG: %#x", (unsigned)status);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	long rounds;

	if (argc != 2)
		return 2;
	self = argv[0];
	if (strcmp(argv[1], "child") == 0)
		return child(NULL);
	rounds = strtol(argv[1], NULL, 10);
	handle(SIGUSR1, on_end, SA_RESTART);
	must(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "subreaper");
	begin();
	/* The signal is this thread's: before its waitpid returns. */
	mask(SIG_BLOCK, SIGUSR1);
	thread = start(calculate, NULL);
	mask(SIG_UNBLOCK, SIGUSR1);
	for (long n = 0; n < rounds; n++) {
		check_end("fork", by_fork(), 0);
		check_end("vfork", by_vfork(), 0);
		check_end("posix_spawn", by_spawn(), 0);
		clones(n);
		trace_a_child();
		adopt_an_orphan();
		ends();
	}
	atomic_store(&ending, true);
	join(thread);
	if (waitpid(-1, NULL, __WALL | WNOHANG) >= 0 || errno != ECHILD)
		wrong("a child is left");
	printf("rounds %ld\n", rounds);
	return finish();
}
