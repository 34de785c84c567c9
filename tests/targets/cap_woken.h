/* Waits that end because another thread does something. */
#ifndef TESTS_TARGETS_CAP_WOKEN_H
#define TESTS_TARGETS_CAP_WOKEN_H

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>

#include "cap_timed.h"

static bool woken_read(struct wait *w)
{
	char byte;

	return read(w->fd, &byte, 1) == 1;
}

static bool woken_readv(struct wait *w)
{
	char byte;
	const struct iovec iov = {&byte, 1};

	return readv(w->fd, &iov, 1) == 1;
}

static bool woken_recv(struct wait *w)
{
	char byte;

	return recv(w->fd, &byte, 1, 0) == 1;
}

static bool woken_poll(struct wait *w)
{
	struct pollfd p = {.fd = w->fd, .events = POLLIN};

	return poll(&p, 1, -1) == 1 && woken_read(w);
}

static bool woken_select(struct wait *w)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(w->fd, &set);
	return select(w->fd + 1, &set, NULL, NULL, NULL) == 1 && woken_read(w);
}

/* The pair's end itself is watched; other is the epoll's. */
static void make_watched(struct wait *w)
{
	struct epoll_event event = {.events = EPOLLIN};

	make_pair(w);
	w->word = epoll_create1(0);
	event.data.fd = w->fd;
	need(w->word >= 0 &&
	     epoll_ctl(w->word, EPOLL_CTL_ADD, w->fd, &event) == 0);
}

static bool woken_epoll(struct wait *w)
{
	struct epoll_event event;

	return epoll_wait(w->word, &event, 1, -1) == 1 && woken_read(w);
}

/* It has a timeout, which is never reached. */
static bool woken_epoll_timed(struct wait *w)
{
	struct epoll_event event;

	return epoll_wait(w->word, &event, 1, LONG_WAIT_S * 1000) == 1 &&
	       woken_read(w);
}

static void make_full_pipe(struct wait *w)
{
	make_pipe(w);
	fcntl(w->other, F_SETFL, O_NONBLOCK);
	while (write(w->other, bytes, 4096) > 0)
		;
	fcntl(w->other, F_SETFL, 0);
}

static bool woken_write(struct wait *w)
{
	return write(w->other, bytes, 4096) == 4096;
}

static void read_page(struct wait *w)
{
	char page[4096];

	(void)!read(w->fd, page, sizeof(page));
}

static void make_pty(struct wait *w)
{
	struct termios t;

	w->other = posix_openpt(O_RDWR | O_NOCTTY);
	need(w->other >= 0 && grantpt(w->other) == 0 &&
	     unlockpt(w->other) == 0);
	w->fd = open(ptsname(w->other), O_RDWR | O_NOCTTY);
	need(w->fd >= 0 && tcgetattr(w->fd, &t) == 0);
	cfmakeraw(&t);
	need(tcsetattr(w->fd, TCSANOW, &t) == 0);
}

static void make_eventfd(struct wait *w)
{
	w->fd = w->other = eventfd(0, 0);
	need(w->fd >= 0);
}

static bool woken_eventfd(struct wait *w)
{
	uint64_t n;

	return read(w->fd, &n, sizeof(n)) == sizeof(n);
}

static void wake_eventfd(struct wait *w)
{
	const uint64_t one = 1;

	(void)!write(w->other, &one, sizeof(one));
}

static void make_timerfd(struct wait *w)
{
	struct itimerspec t = {.it_value = span(w), .it_interval = span(w)};

	w->fd = timerfd_create(CLOCK_MONOTONIC, 0);
	need(w->fd >= 0 && timerfd_settime(w->fd, 0, &t, NULL) == 0);
}

static void make_inotify(struct wait *w)
{
	char path[64] = "/tmp/cap_waits.XXXXXX";

	w->fd = inotify_init1(0);
	w->other = mkstemp(path);
	need(w->fd >= 0 && w->other >= 0 &&
	     inotify_add_watch(w->fd, path, IN_MODIFY) >= 0 &&
	     unlink(path) == 0);
}

static bool woken_inotify(struct wait *w)
{
	char events[512];

	return read(w->fd, events, sizeof(events)) > 0;
}

/* SIGRTMIN + 1 and + 2 are blocked in all threads. */
static void make_signalfd(struct wait *w)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	w->fd = signalfd(-1, &set, 0);
	need(w->fd >= 0);
}

static bool woken_signalfd(struct wait *w)
{
	struct signalfd_siginfo info;

	return read(w->fd, &info, sizeof(info)) == sizeof(info);
}

static void send_signal(struct wait *w, int number)
{
	syscall(SYS_tgkill, getpid(), atomic_load(&w->tid), number);
}

static void wake_signalfd(struct wait *w)
{
	send_signal(w, SIGRTMIN + 1);
}

static bool woken_sigwaitinfo(struct wait *w)
{
	sigset_t set;

	(void)w;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 2);
	return sigwaitinfo(&set, NULL) == SIGRTMIN + 2;
}

static void wake_sigwaitinfo(struct wait *w)
{
	send_signal(w, SIGRTMIN + 2);
}

/* These two end by EINTR, and only when a handler has run. */
static bool woken_pause(struct wait *w)
{
	(void)w;
	handled = 0;
	return pause() < 0 && errno == EINTR && handled != 0;
}

static bool woken_sigsuspend(struct wait *w)
{
	sigset_t set;

	(void)w;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	handled = 0;
	return sigsuspend(&set) < 0 && errno == EINTR && handled != 0;
}

static void wake_handler(struct wait *w)
{
	send_signal(w, SIGUSR1);
}

static bool woken_semop(struct wait *w)
{
	struct sembuf op = {.sem_op = -1};

	return semop(w->fd, &op, 1) == 0;
}

static void wake_semop(struct wait *w)
{
	struct sembuf op = {.sem_op = 1};

	(void)semop(w->fd, &op, 1);
}

struct message {
	long type;
	char text[1];
};

static void make_msg(struct wait *w)
{
	w->fd = msgget(IPC_PRIVATE, 0600);
	need(w->fd >= 0);
}

static void wake_msgrcv(struct wait *w)
{
	const struct message m = {.type = 1};

	(void)msgsnd(w->fd, &m, 1, IPC_NOWAIT);
}

static bool woken_msgrcv(struct wait *w)
{
	struct message m;

	return msgrcv(w->fd, &m, 1, 0, 0) == 1;
}

static void make_msg_full(struct wait *w)
{
	const struct message m = {.type = 1};

	make_msg(w);
	while (msgsnd(w->fd, &m, 1, IPC_NOWAIT) == 0)
		;
}

static bool woken_msgsnd(struct wait *w)
{
	const struct message m = {.type = 1};

	return msgsnd(w->fd, &m, 1, 0) == 0;
}

static void wake_msgsnd(struct wait *w)
{
	struct message m;

	(void)msgrcv(w->fd, &m, 1, 0, IPC_NOWAIT);
}

static bool woken_mq_receive(struct wait *w)
{
	char byte;

	return mq_receive(w->fd, &byte, 1, NULL) == 1;
}

static void wake_mq_receive(struct wait *w)
{
	const struct timespec now = {0};

	(void)mq_timedsend(w->fd, "x", 1, 0, &now);
}

static bool woken_mq_send(struct wait *w)
{
	return mq_send(w->fd, "x", 1, 0) == 0;
}

static void wake_mq_send(struct wait *w)
{
	const struct timespec now = {0};
	char byte;

	(void)mq_timedreceive(w->fd, &byte, 1, NULL, &now);
}

/* Of a socket of the Internet, so that both ends do some work. */
static void make_listener(struct wait *w)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};

	w->fd = socket(AF_INET, SOCK_STREAM, 0);
	need(w->fd >= 0 && bind(w->fd, (const void *)&any, sizeof(any)) == 0 &&
	     listen(w->fd, 64) == 0);
}

static int connect_to(int listener)
{
	const struct linger reset = {.l_onoff = 1};
	struct sockaddr_in name;
	socklen_t size = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	need(fd >= 0 && getsockname(listener, (void *)&name, &size) == 0);
	if (connect(fd, (const void *)&name, sizeof(name)) < 0) {
		size = (socklen_t)errno;
		close(fd);
		errno = (int)size;
		return -1;
	}
	/* No port is left waiting. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return fd;
}

static void wake_accept(struct wait *w)
{
	int fd = connect_to(w->fd);

	if (fd >= 0)
		close(fd);
}

static bool woken_accept(struct wait *w)
{
	int fd = accept(w->fd, NULL, NULL);

	/* Reset before it was accepted. */
	if (fd < 0 && errno == ECONNABORTED)
		return true;
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool woken_connect(struct wait *w)
{
	int fd = connect_to(w->fd);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void wake_connect(struct wait *w)
{
	int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK);

	if (fd >= 0)
		close(fd);
}

static void make_locked_by_other(struct wait *w)
{
	char path[64];

	w->fd = memfd_create("cap_waits", 0);
	need(w->fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->fd);
	w->other = open(path, O_RDWR);
	need(w->other >= 0 && flock(w->other, LOCK_EX) == 0);
}

/* So that the other one comes in between. */
static bool after_it(struct wait *w, bool ok)
{
	return ok && timed_nanosleep(w);
}

static bool woken_flock(struct wait *w)
{
	return after_it(w, flock(w->fd, LOCK_EX) == 0 &&
				   flock(w->fd, LOCK_UN) == 0);
}

static void wake_flock(struct wait *w)
{
	(void)flock(w->other, LOCK_UN);
	sched_yield();
	while (flock(w->other, LOCK_EX) < 0)
		;
}

static bool lock_record(int fd, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};

	return fcntl(fd, F_OFD_SETLKW, &lock) == 0;
}

static void make_record_locked(struct wait *w)
{
	make_locked_by_other(w);
	need(lock_record(w->other, F_WRLCK));
}

static bool woken_record_lock(struct wait *w)
{
	return after_it(w, lock_record(w->fd, F_WRLCK) &&
				   lock_record(w->fd, F_UNLCK));
}

static void wake_record_lock(struct wait *w)
{
	(void)lock_record(w->other, F_UNLCK);
	sched_yield();
	while (!lock_record(w->other, F_WRLCK))
		;
}

static void make_mutex(struct wait *w)
{
	pthread_mutexattr_t pi;

	pthread_mutexattr_init(&pi);
	if (strcmp(w->kind->name, "mutex_pi") == 0)
		pthread_mutexattr_setprotocol(&pi, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&w->mutex, &pi);
	pthread_cond_init(&w->cond, NULL);
}

static bool woken_mutex(struct wait *w)
{
	return after_it(w,
			error_is(pthread_mutex_lock(&w->mutex), 0) &&
				error_is(pthread_mutex_unlock(&w->mutex), 0));
}

static void wake_mutex(struct wait *w)
{
	/* Held from one time to the next. */
	if (w->word != 0)
		pthread_mutex_unlock(&w->mutex);
	sched_yield();
	pthread_mutex_lock(&w->mutex);
	w->word = 1;
}

static bool woken_cond(struct wait *w)
{
	int r = 0;

	pthread_mutex_lock(&w->mutex);
	while (w->word == 0 && r == 0)
		r = pthread_cond_wait(&w->cond, &w->mutex);
	w->word = 0;
	pthread_mutex_unlock(&w->mutex);
	return error_is(r, 0);
}

static void wake_cond(struct wait *w)
{
	pthread_mutex_lock(&w->mutex);
	w->word = 1;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->mutex);
}

static bool woken_sem(struct wait *w)
{
	return sem_wait(&w->sem) == 0;
}

static void wake_sem(struct wait *w)
{
	int n;

	if (sem_getvalue(&w->sem, &n) == 0 && n == 0)
		sem_post(&w->sem);
}

static pid_t make_child(const struct wait *w)
{
	const struct timespec t = span(w);
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		nanosleep(&t, NULL);
		_exit(0);
	}
	return child;
}

static bool woken_wait4(struct wait *w)
{
	pid_t child = make_child(w);

	return child > 0 && waitpid(child, NULL, 0) == child;
}

static bool woken_waitid(struct wait *w)
{
	pid_t child = make_child(w);
	siginfo_t info;

	return child > 0 && waitid(P_PID, (id_t)child, &info, WEXITED) == 0;
}

static bool woken_splice(struct wait *w)
{
	return splice(w->fd, NULL, w->word, NULL, 1, 0) == 1;
}

static void make_splice(struct wait *w)
{
	make_pipe(w);
	w->word = open("/dev/null", O_WRONLY);
	need(w->word >= 0);
}

static void make_tee(struct wait *w)
{
	int pair[2];

	make_pipe(w);
	need(pipe(pair) == 0);
	/* Its reader is never asked: what goes in is thrown away with it. */
	w->word = pair[1];
	w->aio = (aio_context_t)pair[0];
}

static bool woken_tee(struct wait *w)
{
	char byte;

	return tee(w->fd, w->word, 1, 0) == 1 && read(w->fd, &byte, 1) == 1 &&
	       read((int)w->aio, &byte, 1) == 1;
}

static void make_fifo(struct wait *w)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/cap_waits.%d.%p", getpid(),
		 (void *)w);
	need(mkfifo(path, 0600) == 0);
	w->other = open(path, O_PATH);
	need(w->other >= 0 && unlink(path) == 0);
}

static int open_fifo(struct wait *w, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", w->other);
	return open(path, flags);
}

static bool woken_open(struct wait *w)
{
	int fd = open_fifo(w, O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void wake_open(struct wait *w)
{
	int fd = open_fifo(w, O_WRONLY | O_NONBLOCK);

	if (fd >= 0)
		close(fd);
}

#endif
