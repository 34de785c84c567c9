/*
 * What signals do to calls that wait: by the table of signal(7).
 *
 * Usage: life_waits N. A thread waits in each of these calls in turn. While it
 * is blocked there it is sent, N times each: a signal whose handler restarts
 * calls, one whose handler does not, and signals that are ignored, by default
 * or by choice. Ignored ones end no wait, the first kind only those of calls
 * that never restart, the second all.
 */
#include "life.h"

#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#define HOUR_S 3600

static const struct timespec hour = {.tv_sec = HOUR_S};

static atomic_ulong eintr, other, handled;
static atomic_bool ending;
static atomic_int waiter;
static int fd, number;
static int word;
static pid_t child;

static void make_pipe(void)
{
	int fds[2];

	must(pipe(fds) == 0, "pipe");
	fd = fds[0];
}

static void make_pair(void)
{
	int fds[2];

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	fd = fds[0];
}

static void make_limited_pair(void)
{
	const struct timeval timeout = {.tv_sec = HOUR_S};

	make_pair();
	must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout,
			sizeof(timeout)) == 0,
	     "setsockopt");
}

static void make_listener(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};

	fd = socket(AF_INET, SOCK_STREAM, 0);
	must(bind(fd, (const void *)&any, sizeof(any)) == 0 &&
		     listen(fd, 1) == 0,
	     "listen");
}

static void make_epoll(void)
{
	fd = epoll_create1(0);
}

static void make_eventfd(void)
{
	fd = eventfd(0, 0);
}

static void make_timerfd(void)
{
	const struct itimerspec later = {.it_value = hour};

	fd = timerfd_create(CLOCK_MONOTONIC, 0);
	must(timerfd_settime(fd, 0, &later, NULL) == 0, "timerfd_settime");
}

static void make_signalfd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	fd = signalfd(-1, &set, 0);
}

static void make_inotify(void)
{
	fd = inotify_init1(0);
}

static void make_ipc(void)
{
	/* In a namespace of its own it goes with us, however we end. */
	(void)unshare(CLONE_NEWIPC);
}

static void make_semaphore(void)
{
	number = semget(IPC_PRIVATE, 1, 0600);
}

static void make_queue(void)
{
	number = msgget(IPC_PRIVATE, 0600);
}

static void make_lock(void)
{
	char path[] = "/tmp/life_waits.XXXXXX";
	char self[64];
	int path_fd = mkstemp(path);

	must(path_fd >= 0 && unlink(path) == 0, "mkstemp");
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	must(flock(path_fd, LOCK_EX) == 0, "flock");
	fd = open(self, O_RDWR | O_CLOEXEC);
	must(fd >= 0, "open");
}

static void make_record_lock(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fds[2];
	char byte;

	make_lock();
	must(pipe(fds) == 0, "pipe");
	child = fork();
	if (child == 0) {
		must(fcntl(fd, F_SETLK, &lock) == 0 &&
			     write(fds[1], "", 1) == 1,
		     "F_SETLK");
		for (;;)
			(void)pause();
	}
	must(read(fds[0], &byte, 1) == 1, "the child's lock");
}

static void make_child(void)
{
	child = fork();
	while (child == 0)
		(void)pause();
}

static long call_read(void)
{
	char bytes[512];

	return read(fd, bytes, sizeof(bytes));
}

static long call_recv(void)
{
	char byte;

	return recv(fd, &byte, 1, 0);
}

static long call_accept(void)
{
	return accept(fd, NULL, NULL);
}

static long call_epoll_wait(void)
{
	struct epoll_event event;

	return epoll_wait(fd, &event, 1, -1);
}

static long call_poll(void)
{
	struct pollfd none = {.fd = -1};

	return poll(&none, 1, HOUR_S * 1000);
}

static long call_ppoll(void)
{
	struct timespec timeout = hour;
	sigset_t set;

	sigemptyset(&set);
	return ppoll(NULL, 0, &timeout, &set);
}

static long call_select(void)
{
	return select(0, NULL, NULL, NULL, NULL);
}

static long call_nanosleep(void)
{
	return nanosleep(&hour, NULL);
}

static long call_clock_nanosleep(void)
{
	int r = clock_nanosleep(CLOCK_MONOTONIC, 0, &hour, NULL);

	errno = r;
	return -r;
}

static long call_futex(void)
{
	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static long call_timed_futex(void)
{
	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &hour, NULL, 0);
}

static long call_semop(void)
{
	struct sembuf op = {.sem_op = -1};

	return semop(number, &op, 1);
}

static long call_semtimedop(void)
{
	struct sembuf op = {.sem_op = -1};

	return semtimedop(number, &op, 1, &hour);
}

static long call_msgrcv(void)
{
	struct {
		long type;
		char text[8];
	} message;

	return msgrcv(number, &message, sizeof(message.text), 0, 0);
}

static long call_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMAX);
	return sigtimedwait(&set, NULL, &hour);
}

static long call_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	return sigsuspend(&none);
}

static long call_pause(void)
{
	return pause();
}

static long call_wait4(void)
{
	return waitpid(child, NULL, 0);
}

static long call_flock(void)
{
	return flock(fd, LOCK_EX);
}

static long call_record_lock(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_SETLKW, &lock);
}

static const struct {
	const char *name;
	void (*make)(void);
	long (*call)(void);
	bool restarts; /* with SA_RESTART */
} calls[] = {
	{"read of a pipe", make_pipe, call_read, true},
	{"read of a socket", make_pair, call_read, true},
	{"read of a socket with a timeout", make_limited_pair, call_read,
	 false},
	{"read of an eventfd", make_eventfd, call_read, true},
	{"read of a timerfd", make_timerfd, call_read, true},
	{"read of a signalfd", make_signalfd, call_read, true},
	{"read of inotify", make_inotify, call_read, true},
	{"recv", make_pair, call_recv, true},
	{"recv with a timeout", make_limited_pair, call_recv, false},
	{"accept", make_listener, call_accept, true},
	{"epoll_wait", make_epoll, call_epoll_wait, false},
	{"poll", NULL, call_poll, false},
	{"ppoll", NULL, call_ppoll, false},
	{"select", NULL, call_select, false},
	{"nanosleep", NULL, call_nanosleep, false},
	{"clock_nanosleep", NULL, call_clock_nanosleep, false},
	{"futex", NULL, call_futex, true},
	{"futex with a timeout", NULL, call_timed_futex, false},
	{"semop", make_semaphore, call_semop, false},
	{"semtimedop", make_semaphore, call_semtimedop, false},
	{"msgrcv", make_queue, call_msgrcv, false},
	{"sigtimedwait", NULL, call_sigtimedwait, false},
	{"sigsuspend", NULL, call_sigsuspend, false},
	{"pause", NULL, call_pause, false},
	{"wait4", make_child, call_wait4, true},
	{"flock", make_lock, call_flock, true},
	{"fcntl lock", make_record_lock, call_record_lock, true},
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

static void on_signal(int signal)
{
	(void)signal;
	atomic_fetch_add(&handled, 1);
}

/* It runs a little between two waits, so that ticks find it running. */
static void *wait_in_call(void *arg)
{
	size_t i = (size_t)(uintptr_t)arg;

	atomic_store(&waiter, thread_number());
	while (!atomic_load(&ending)) {
		if (calls[i].call() < 0 && errno == EINTR)
			atomic_fetch_add(&eintr, 1);
		else
			atomic_fetch_add(&other, 1);
		run_for(50000);
	}
	return NULL;
}

static void until_blocked(void)
{
	uint64_t since = now_ns();
	pid_t tid = atomic_load(&waiter);

	/* Twice: once may be on the way out. */
	for (int n = 0; n < 2;) {
		n = blocked_in(tid) >= 0 ? n + 1 : 0;
		patience(since, "the thread does not wait");
	}
}

/* Sends a signal n times; returns how often the call returned EINTR. */
static unsigned long send_signals(int signal, unsigned long n, bool has_handler)
{
	unsigned long before = atomic_load(&eintr);

	for (unsigned long i = 0; i < n; i++) {
		unsigned long so_far = atomic_load(&handled);
		uint64_t since;

		until_blocked();
		must(syscall(SYS_tgkill, getpid(), atomic_load(&waiter),
			     signal) == 0,
		     "tgkill");
		since = now_ns();
		while (has_handler && atomic_load(&handled) == so_far)
			patience(since, "a signal is not handled");
	}
	until_blocked();
	return atomic_load(&eintr) - before;
}

static void try_call(size_t i, unsigned long n)
{
	static const int ignored[] = {SIGCHLD, SIGWINCH, SIGURG,
				      SIGCONT, SIGUSR2,	 SIGTSTP};
	unsigned long restart, plain, without = 0;
	pthread_t thread;

	atomic_store(&waiter, 0);
	atomic_store(&ending, false);
	atomic_store(&other, 0);
	if (calls[i].make != NULL)
		calls[i].make();
	must(fd >= 0 && number >= 0, calls[i].name);
	must(pthread_create(&thread, NULL, wait_in_call, (void *)i) == 0,
	     "pthread_create");
	while (atomic_load(&waiter) == 0)
		(void)sched_yield();
	for (size_t k = 0; k < sizeof(ignored) / sizeof(ignored[0]); k++)
		without += send_signals(ignored[k], n, false);
	restart = send_signals(SIGALRM, n, true);
	plain = send_signals(SIGUSR1, n, true);
	printf("%s: EINTR %lu ignored, %lu SA_RESTART, %lu without; other "
	       "%lu\n",
	       calls[i].name, without, restart, plain, atomic_load(&other));
	if (without != 0 || plain != n ||
	    restart != (calls[i].restarts ? 0 : n))
		wrong("%s: EINTR %lu, %lu, %lu of %lu", calls[i].name, without,
		      restart, plain, n);
	/* What it waits for does not come: the last signal ends it. */
	atomic_store(&ending, true);
	(void)syscall(SYS_tgkill, getpid(), atomic_load(&waiter), SIGUSR1);
	must(pthread_join(thread, NULL) == 0, "pthread_join");
	if (child > 0)
		(void)kill(child, SIGKILL);
	child = 0;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t real_time;

	if (argc != 2)
		return 2;
	sigemptyset(&real_time);
	sigaddset(&real_time, SIGRTMAX);
	(void)sigprocmask(SIG_BLOCK, &real_time, NULL);
	(void)sigaction(SIGUSR1, &action, NULL);
	action.sa_flags = SA_RESTART;
	(void)sigaction(SIGALRM, &action, NULL);
	(void)signal(SIGUSR2, SIG_IGN);
	(void)signal(SIGTSTP, SIG_IGN);
	make_ipc();
	begin();
	for (size_t i = 0; i < CALLS; i++)
		try_call(i, strtoul(argv[1], NULL, 10));
	return finish();
}
