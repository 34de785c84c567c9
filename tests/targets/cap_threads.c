/*
 * A process whose threads come and go on command. Usage: cap_threads
 * [leaderless]: then the main thread exits at once and another one obeys.
 * Says "ready TID" with the number of the thread that obeys.
 *
 * Lines on its input, each answered by "ok" and a number:
 *   busy N     N threads that never wait              number of the last
 *   asleep N   N threads that wait for "join"         number of the last
 *   storm N    N threads that start threads, until "join"
 *   join       ends all of these
 *   name TEXT  gives the last thread a name
 *   exec [N]   runs itself anew, from a thread that is not the leader, and that
 *              sends the obeying thread signal N just before
 *   hidden exec  the same, from a thread that the kernel attaches to no tracer
 *   hidden wait  makes one of those that waits for "hidden end"   its number
 *   clone      makes a process by clone(2) that gives no SIGCHLD: its pid
 *   child      makes a process by fork(2), and waits for its end
 *   waiter     makes one that waits for the input's end in epoll_wait(2), and
 *              ends at once if that fails: its pid
 *   vfork      makes one by vfork(2), which ends with the next byte of the input
 *   vforks     the same in a thread of its own, which ends a moment after "end"
 *   handle N   gives signal N a handler that says "traced" and how many of the
 *              process's threads a tracer has, and returns
 *   nodefer N  the same with SA_NODEFER
 *   raise N    sends the obeying thread signal N
 *   born N     the same after making a thread, for which it does not wait
 * And "leave": the main thread exits, another one obeys and says "ready TID".
 * At the input's end the process ends.
 */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "target.h"

#define THREADS_MAX 1024

static pthread_t threads[THREADS_MAX];
static size_t n_threads;
static atomic_bool ending;
static atomic_int last_tid;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t end = PTHREAD_COND_INITIALIZER;
static char program[] = /* Not self: a leader that is gone has none. */
	"/proc/thread-self/exe";

static void *busy(void *unused)
{
	atomic_store(&last_tid, thread_number());
	while (!atomic_load(&ending))
		;
	return unused;
}

static void *asleep(void *unused)
{
	pthread_mutex_lock(&lock);
	atomic_store(&last_tid, thread_number());
	while (!atomic_load(&ending))
		pthread_cond_wait(&end, &lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void *nothing(void *unused)
{
	return unused;
}

static void *storm(void *unused)
{
	pthread_t thread;

	atomic_store(&last_tid, thread_number());
	while (!atomic_load(&ending))
		if (pthread_create(&thread, NULL, nothing, NULL) == 0)
			pthread_join(thread, NULL);
	return unused;
}

static int start_threads(void *(*function)(void *), long n)
{
	for (long i = 0; i < n && n_threads < THREADS_MAX; i++) {
		atomic_store(&last_tid, 0);
		threads[n_threads++] = start(function, NULL);
		while (atomic_load(&last_tid) == 0)
			sched_yield();
	}
	return atomic_load(&last_tid);
}

static void join(void)
{
	pthread_mutex_lock(&lock);
	atomic_store(&ending, true);
	pthread_cond_broadcast(&end);
	pthread_mutex_unlock(&lock);
	while (n_threads > 0)
		pthread_join(threads[--n_threads], NULL);
	atomic_store(&ending, false);
}

/* The signal that the obeying thread gets just before another one runs the program anew. */
static int signal_first;
static pthread_t obeying;

static void *run_anew(void *unused)
{
	if (signal_first != 0)
		pthread_kill(obeying, signal_first);
	execl(program, "cap_threads", NULL);
	abort();
	return unused;
}

static int exec_now(void *unused)
{
	return run_anew(unused) != NULL;
}

static atomic_bool hidden_ending;

static int wait_for_end(void *unused)
{
	while (!atomic_load(&hidden_ending))
		sched_yield();
	return unused != NULL;
}

/* As a thread of pthread_create, but untraced. */
static int start_hidden(int (*function)(void *))
{
	static char stack[65536] __attribute__((aligned(16)));
	int tid = clone(function, stack + sizeof(stack),
			CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				CLONE_SYSVSEM | CLONE_UNTRACED,
			NULL);

	if (tid < 0)
		abort();
	return tid;
}

static int obey_hidden(const char *argument)
{
	if (strcmp(argument, "wait") == 0)
		return start_hidden(wait_for_end);
	if (strcmp(argument, "end") == 0) {
		atomic_store(&hidden_ending, true);
		return 0;
	}
	(void)start_hidden(exec_now);
	for (;;)
		pause();
}

static int stay(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return 0;
}

static int clone_quietly(void)
{
	static char stack[65536] __attribute__((aligned(16)));

	return clone(stay, stack + sizeof(stack), 0, NULL);
}

static void give_name(const char *name)
{
	char path[64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/comm", atomic_load(&last_tid));
	file = fopen(path, "w");
	if (file == NULL || fputs(name, file) < 0 || fclose(file) != 0)
		abort();
}

static int fork_and_wait(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	while (waitpid(pid, NULL, 0) < 0)
		;
	return pid;
}

static int fork_waiter(void)
{
	struct epoll_event e = {.events = 0}; /* EPOLLHUP comes all the same */
	int fd = epoll_create1(EPOLL_CLOEXEC);
	pid_t pid = fork();

	if (pid > 0) {
		close(fd);
		return pid;
	}
	if (fd >= 0 && epoll_ctl(fd, EPOLL_CTL_ADD, STDIN_FILENO, &e) == 0)
		(void)!epoll_wait(fd, &e, 1, -1);
	_exit(0);
}

static int vfork_and_wait(void)
{
	pid_t pid = vfork();
	char byte;

	if (pid == 0) {
		(void)!read(STDIN_FILENO, &byte, 1);
		_exit(0);
	}
	while (waitpid(pid, NULL, 0) < 0)
		;
	return pid;
}

static void *vfork_in_thread(void *unused)
{
	pid_t pid;

	atomic_store(&last_tid, thread_number());
	pid = vfork();
	if (pid == 0) {
		while (!atomic_load(&ending))
			sched_yield();
		_exit(0);
	}
	while (waitpid(pid, NULL, 0) < 0)
		;
	return unused;
}

static bool has_tracer(const char *tid)
{
	char path[300], line[128];
	bool traced = false;
	FILE *file;
	int tracer;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	file = fopen(path, "r");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			traced = tracer != 0;
	if (file != NULL)
		fclose(file);
	return traced;
}

/* Runs while the obeying thread is in read(2), tgkill(2) or a loop without a lock. */
static void say_traced(int signal)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	(void)signal;
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		n += entry->d_name[0] != '.' && has_tracer(entry->d_name);
	if (dir != NULL)
		closedir(dir);
	printf("traced %d\n", n);
}

static void set_handler(int signal, int flags)
{
	const struct sigaction action = {.sa_handler = say_traced, .sa_flags = flags};

	if (sigaction(signal, &action, NULL) < 0)
		abort();
}

static int obey_line(const char *command, const char *argument)
{
	long n = strtol(argument, NULL, 10);

	if (strcmp(command, "busy") == 0)
		return start_threads(busy, n);
	if (strcmp(command, "asleep") == 0)
		return start_threads(asleep, n);
	if (strcmp(command, "storm") == 0)
		return start_threads(storm, n);
	if (strcmp(command, "join") == 0)
		join();
	else if (strcmp(command, "name") == 0)
		give_name(argument);
	else if (strcmp(command, "hidden") == 0)
		return obey_hidden(argument);
	else if (strcmp(command, "clone") == 0)
		return clone_quietly();
	else if (strcmp(command, "child") == 0)
		return fork_and_wait();
	else if (strcmp(command, "waiter") == 0)
		return fork_waiter();
	else if (strcmp(command, "vfork") == 0)
		return vfork_and_wait();
	else if (strcmp(command, "vforks") == 0)
		return start_threads(vfork_in_thread, 1);
	else if (strcmp(command, "handle") == 0)
		set_handler((int)n, SA_RESTART);
	else if (strcmp(command, "nodefer") == 0)
		set_handler((int)n, SA_RESTART | SA_NODEFER);
	else if (strcmp(command, "raise") == 0)
		raise((int)n);
	else if (strcmp(command, "born") == 0) {
		start(asleep, NULL);
		raise((int)n);
	} else if (strcmp(command, "exec") == 0) {
		signal_first = (int)n;
		obeying = pthread_self();
		pthread_join(start(run_anew, NULL), NULL);
	}
	return 0;
}

static void *obey(void *unused);

static void leave(void)
{
	start(obey, NULL);
	pthread_exit(NULL);
}

static void *obey(void *unused)
{
	char line[64], command[16], argument[32];

	/* One byte at a time: what follows "exec" is the next program's. */
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	ready(thread_number());
	while (fgets(line, sizeof(line), stdin) != NULL) {
		argument[0] = '\0';
		if (strcmp(line, "leave\n") == 0)
			leave();
		if (sscanf(line, "%15s %31s", command, argument) >= 1)
			printf("ok %d\n", obey_line(command, argument));
	}
	_exit(0);
	return unused;
}

int main(int argc, char **argv)
{
	if (argc >= 2 && strcmp(argv[1], "leaderless") == 0)
		leave();
	obey(NULL);
}
