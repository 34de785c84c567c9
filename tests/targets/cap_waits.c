/*
 * Threads that wait, in every kind of call, and count how the calls end.
 *
 * Usage: cap_waits CALL: a thread waits in this call; nothing wakes it.
 *        cap_waits MICROSECONDS [CALL]: a thread for each kind of call (or this
 *        one) waits that long, or until another thread wakes it, and again.
 *        Those of children only where they are named: their SIGCHLD disturbs
 *        the others.
 *        cap_waits --list: the calls.
 * Says "ready TID", with the first thread's number.
 *
 * Lines on its input, each answered by one: "eintr" by that and the number of
 * calls that failed with EINTR, "wrong" that came out in another unexpected
 * way, "right", "other" (both): that came out as expected, "least": the fewest
 * that came out as expected of a kind; "names" by a line for each kind: its
 * name and these three; "lengths" by a line for each: its name, how long its
 * calls took, in microseconds, in the mean and at most, and how many there were
 * since the last such line. "wake", answered by "ok 0": what ends the waits
 * happens once. "filter", "ok 0": from now on all are under a seccomp filter
 * that kills for restart_syscall. "storm MICROSECONDS", "ok 0": each waiting
 * thread gets a SIGWINCH, which it ignores, so often. "lull", "ok 0": no more.
 * SIGALRM is handled by whom it is sent to. At the input's end it ends.
 */
// cflags: -lrt
#include <limits.h>
#include <sched.h>

#include "cap_woken.h"
#include "filter.h"

static const struct wait_kind kinds[] = {
	{"epoll_wait", make_epoll, timed_epoll_wait, NULL},
	{"epoll_pwait", make_epoll, timed_epoll_pwait, NULL},
	{"epoll_pwait2", make_epoll, timed_epoll_pwait2, NULL},
	{"poll", NULL, timed_poll, NULL},
	{"ppoll", NULL, timed_ppoll, NULL},
	{"ppoll_read_only", NULL, timed_ppoll_read_only, NULL},
	{"pselect", NULL, timed_pselect, NULL},
	{"pselect_read_only", NULL, timed_pselect_read_only, NULL},
	{"select", NULL, timed_select, NULL},
	{"nanosleep", NULL, timed_nanosleep, NULL},
	{"clock_nanosleep", NULL, timed_clock_nanosleep, NULL},
	{"clock_nanosleep_absolute", NULL, timed_clock_nanosleep_absolute,
	 NULL},
	{"sigtimedwait", NULL, timed_sigtimedwait, NULL},
	{"semtimedop", make_semaphore, timed_semtimedop, NULL},
	{"mq_timedreceive", make_mq, timed_mq_receive, NULL},
	{"mq_timedsend", make_mq_full, timed_mq_send, NULL},
	{"recv_timeout", make_timed_pair, timed_recv, NULL},
	{"recv_all_timeout", make_timed_pair, timed_recv_all, write_other},
	{"recvmsg_timeout", make_timed_pair, timed_recvmsg, NULL},
	{"recvmmsg_timeout", make_timed_pair, timed_recvmmsg, NULL},
	{"recvmmsg_all_timeout", make_timed_pair, timed_recvmmsg_all,
	 write_other},
	{"read_timeout", make_timed_pair, timed_read, NULL},
	{"readv_timeout", make_timed_pair, timed_readv, NULL},
	{"preadv2_timeout", make_timed_pair, timed_preadv2, NULL},
	{"send_timeout", make_timed_full, timed_send, NULL},
	{"sendmsg_timeout", make_timed_full, timed_sendmsg, NULL},
	{"sendmmsg_timeout", make_timed_full, timed_sendmmsg, NULL},
	{"write_timeout", make_timed_full, timed_write, NULL},
	{"writev_timeout", make_timed_full, timed_writev, NULL},
	{"pwritev2_timeout", make_timed_full, timed_pwritev2, NULL},
	{"accept_timeout", make_timed_listener, timed_accept, NULL},
	{"connect_timeout", make_busy, timed_connect, NULL},
	{"connect_tcp_timeout", make_busy_tcp, timed_connect_tcp, NULL},
	{"sendfile_timeout", make_full_and_file, timed_sendfile, NULL},
	{"splice_timeout", make_pipe_and_full, timed_splice, NULL},
	{"splice_in_timeout", make_pair_and_pipe, timed_splice_in, NULL},
	{"futex", NULL, timed_futex, NULL},
	{"futex_waitv", NULL, timed_futex_waitv, NULL},
	{"cond_timedwait", make_locked, timed_cond, NULL},
	{"mutex_timedlock", make_locked, timed_mutex, NULL},
	{"sem_timedwait", make_sem, timed_sem, NULL},
	{"io_getevents", make_aio, timed_io_getevents, NULL},
	{"io_pgetevents", make_aio, timed_io_pgetevents, NULL},
	{"io_uring_enter", make_ring, timed_io_uring, NULL},
	{"timerfd", make_timerfd, woken_eventfd, NULL},
	{"wait4", NULL, woken_wait4, NULL},
	{"waitid", NULL, woken_waitid, NULL},

	{"read_pipe", make_pipe, woken_read, write_other},
	{"readv_pipe", make_pipe, woken_readv, write_other},
	{"write_pipe", make_full_pipe, woken_write, read_page},
	{"read_tty", make_pty, woken_read, write_other},
	{"recv", make_pair, woken_recv, write_other},
	{"poll_woken", make_pair, woken_poll, write_other},
	{"select_woken", make_pair, woken_select, write_other},
	{"epoll_woken", make_watched, woken_epoll, write_other},
	{"epoll_woken_timed", make_watched, woken_epoll_timed, write_other},
	{"eventfd", make_eventfd, woken_eventfd, wake_eventfd},
	{"inotify", make_inotify, woken_inotify, write_other},
	{"signalfd", make_signalfd, woken_signalfd, wake_signalfd},
	{"sigwaitinfo", NULL, woken_sigwaitinfo, wake_sigwaitinfo},
	{"pause", NULL, woken_pause, wake_handler},
	{"sigsuspend", NULL, woken_sigsuspend, wake_handler},
	{"semop", make_semaphore, woken_semop, wake_semop},
	{"msgrcv", make_msg, woken_msgrcv, wake_msgrcv},
	{"msgsnd", make_msg_full, woken_msgsnd, wake_msgsnd},
	{"mq_receive", make_mq, woken_mq_receive, wake_mq_receive},
	{"mq_send", make_mq_full, woken_mq_send, wake_mq_send},
	{"accept", make_listener, woken_accept, wake_accept},
	{"connect", make_listener, woken_connect, wake_connect},
	{"flock", make_locked_by_other, woken_flock, wake_flock},
	{"record_lock", make_record_locked, woken_record_lock,
	 wake_record_lock},
	{"mutex", make_mutex, woken_mutex, wake_mutex},
	{"mutex_pi", make_mutex, woken_mutex, wake_mutex},
	{"cond", make_mutex, woken_cond, wake_cond},
	{"sem", make_sem, woken_sem, wake_sem},
	{"splice_pipe", make_splice, woken_splice, write_other},
	{"tee", make_tee, woken_tee, write_other},
	{"open_fifo", make_fifo, woken_open, wake_open},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct wait waits[N_KINDS];
static size_t n_waits;

static void on_signal(int number)
{
	(void)number;
	handled = 1;
}

static unsigned long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000 + (unsigned long)t.tv_nsec;
}

static void measure(struct wait *w, unsigned long ns)
{
	unsigned long longest = atomic_load(&w->longest_ns);

	atomic_fetch_add(&w->ns, ns);
	atomic_fetch_add(&w->n, 1);
	while (ns > longest &&
	       !atomic_compare_exchange_weak(&w->longest_ns, &longest, ns))
		;
}

static void *wait_again(void *arg)
{
	struct wait *w = arg;
	unsigned long since;
	sigset_t set;
	bool right;

	/* The handler runs here or in nobody. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(w->kind->wake == wake_handler ? SIG_UNBLOCK : SIG_BLOCK,
			&set, NULL);
	atomic_store(&w->tid, (int)syscall(SYS_gettid));
	for (;;) {
		errno = 0;
		since = now_ns();
		right = w->kind->call(w);
		measure(w, now_ns() - since);
		if (right) {
			atomic_fetch_add(&w->right, 1);
		} else if (errno == EINTR) {
			atomic_fetch_add(&w->eintr, 1);
		} else {
			atomic_store(&w->wrong_errno, errno);
			atomic_fetch_add(&w->wrong, 1);
		}
	}
	return NULL;
}

/* One for all: what it does is over soon. */
static void *wake_again(void *arg)
{
	const struct timespec t = span(&waits[0]);

	(void)arg;
	for (;;) {
		for (size_t i = 0; i < n_waits; i++)
			if (waits[i].kind->wake != NULL)
				waits[i].kind->wake(&waits[i]);
		nanosleep(&t, NULL);
	}
	return NULL;
}

static void install_filter(void)
{
	static const struct sock_filter code[] = {
		FILTER_LOAD_NUMBER,
		FILTER_CALL(SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS),
		FILTER_ALLOW,
	};

	need(filter_install(code, sizeof(code) / sizeof(code[0]),
			    SECCOMP_FILTER_FLAG_TSYNC));
}

static atomic_long storm_us;

static void *storm(void *arg)
{
	long us;

	(void)arg;
	while ((us = atomic_load(&storm_us)) > 0) {
		const struct timespec t = {.tv_sec = us / 1000000,
					   .tv_nsec = us % 1000000 * 1000};

		for (size_t i = 0; i < n_waits; i++)
			if (atomic_load(&waits[i].tid) != 0)
				send_signal(&waits[i], SIGWINCH);
		nanosleep(&t, NULL);
	}
	return NULL;
}

static void start(void *(*function)(void *), void *arg)
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, function, arg) == 0);
}

static bool obey(const char *line)
{
	if (strcmp(line, "wake\n") == 0) {
		for (size_t i = 0; i < n_waits; i++)
			if (waits[i].kind->wake != NULL)
				waits[i].kind->wake(&waits[i]);
	} else if (strcmp(line, "filter\n") == 0) {
		install_filter();
	} else if (strncmp(line, "storm ", 6) == 0) {
		atomic_store(&storm_us, strtol(line + 6, NULL, 10));
		start(storm, NULL);
	} else if (strcmp(line, "lull\n") == 0) {
		atomic_store(&storm_us, 0);
	} else {
		return false;
	}
	puts("ok 0");
	return true;
}

static void print_lengths(void)
{
	for (size_t i = 0; i < n_waits; i++) {
		struct wait *w = &waits[i];
		unsigned long n = atomic_exchange(&w->n, 0);
		unsigned long ns = atomic_exchange(&w->ns, 0);

		printf("%s %lu %lu %lu\n", w->kind->name,
		       n == 0 ? 0 : ns / n / 1000,
		       atomic_exchange(&w->longest_ns, 0) / 1000, n);
	}
}

static void answer(const char *line)
{
	unsigned long eintr = 0, wrong = 0, right = 0, least = ULONG_MAX;

	for (size_t i = 0; i < n_waits; i++) {
		eintr += waits[i].eintr;
		wrong += waits[i].wrong;
		right += waits[i].right;
		if (waits[i].right < least)
			least = waits[i].right;
		if (strcmp(line, "names\n") == 0)
			printf("%s %lu %lu %lu %s\n", waits[i].kind->name,
			       waits[i].eintr, waits[i].wrong, waits[i].right,
			       strerror(waits[i].wrong_errno));
	}
	if (strcmp(line, "eintr\n") == 0)
		printf("eintr %lu\n", eintr);
	else if (strcmp(line, "wrong\n") == 0)
		printf("wrong %lu\n", wrong);
	else if (strcmp(line, "right\n") == 0)
		printf("right %lu\n", right);
	else if (strcmp(line, "other\n") == 0)
		printf("other %lu\n", wrong + right);
	else if (strcmp(line, "least\n") == 0)
		printf("least %lu\n", least);
}

static void add(const struct wait_kind *kind, long us)
{
	struct wait *w = &waits[n_waits++];

	w->kind = kind;
	w->us = us;
	w->fd = w->other = -1;
	if (kind->make != NULL)
		kind->make(w);
}

static bool makes_children(size_t kind)
{
	return kinds[kind].call == woken_wait4 ||
	       kinds[kind].call == woken_waitid;
}

/* Nothing is left behind that outlives a process. */
static void clean_up(void)
{
	for (size_t i = 0; i < n_waits; i++) {
		if (waits[i].kind->make == make_semaphore)
			semctl(waits[i].fd, 0, IPC_RMID);
		if (waits[i].kind->make == make_msg ||
		    waits[i].kind->make == make_msg_full)
			msgctl(waits[i].fd, IPC_RMID, NULL);
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	const char *name = argc > 1 ? argv[argc - 1] : "";
	char *end;
	long us = strtol(argc > 1 ? argv[1] : "", &end, 10);
	sigset_t set;
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	/* In a namespace of its own it goes with us, however we end. */
	(void)unshare(CLONE_NEWIPC);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN + 1);
	sigaddset(&set, SIGRTMIN + 2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (size_t i = 0; i < N_KINDS; i++) {
		if (strcmp(name, "--list") == 0)
			puts(kinds[i].name);
		else if (*end == '\0' && argc == 2 && !makes_children(i))
			add(&kinds[i], us);
		else if (strcmp(name, kinds[i].name) == 0)
			add(&kinds[i], us);
	}
	if (n_waits == 0)
		return strcmp(name, "--list") == 0 ? 0 : 2;
	for (size_t i = 0; i < n_waits; i++)
		start(wait_again, &waits[i]);
	if (us > 0)
		start(wake_again, NULL);
	while (atomic_load(&waits[0].tid) == 0)
		;
	printf("ready %d\n", atomic_load(&waits[0].tid));
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (strcmp(line, "lengths\n") == 0)
			print_lengths();
		else if (!obey(line))
			answer(line);
	}
	clean_up();
	_exit(0);
}
