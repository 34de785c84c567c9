/*
 * Each of the signals that can be caught, 62 of them, sent at random in every
 * way there is: by this process and by another one, to a thread and to the
 * process, by kill, tgkill, sigqueue, rt_tgsigqueueinfo and timers. Each has to
 * arrive once, with its siginfo, at the thread that it was sent to, on the
 * stack that was asked for; real-time ones in their order.
 *
 * Usage: life_signals SEED N. Four threads take the signals: one calculates
 * and checks its results, the others sleep, wait and read. Standard signals are
 * sent one after the other, since they merge; real-time ones to a thread in
 * bursts.
 */
#include "life.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define THREADS	  4
#define BURST_MAX 8
#define NUMBERS	  (_NSIG - 1)

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum way {
	BY_KILL,
	BY_TGKILL,
	BY_SIGQUEUE,
	BY_THREAD_QUEUE,
	BY_TIMER, /* these two by the process itself only */
	BY_THREAD_TIMER,
	WAYS,
};

struct arrival {
	_Atomic int signal; /* written last */
	int code, pid, uid, value;
	pid_t tid;
	bool on_altstack;
	bool is_nested; /* in a handler that had taken its signal, and has not returned */
};

/* With the process that sends. */
static struct {
	atomic_ulong arrived;
	struct arrival arrivals[BURST_MAX];
	pid_t tids[THREADS];
	atomic_bool ready;
	atomic_ulong sent[WAYS];
	atomic_uint wrong;
	atomic_bool done;
} * shared;

static pid_t target;

/* Those that the C library keeps to itself, too. */
struct kernel_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

static bool wants_altstack(int signal)
{
	return signal % 3 == 0;
}

static void on_signal(int signal, siginfo_t *info, void *unused)
{
	static _Thread_local volatile int handlers;
	int saved = errno;
	unsigned long n = atomic_fetch_add(&shared->arrived, 1);
	struct arrival *a = &shared->arrivals[n % BURST_MAX];

	(void)unused;
	a->code = info->si_code;
	a->value = info->si_value.sival_int;
	a->pid = info->si_pid;
	a->uid = (int)info->si_uid;
	a->tid = thread_number();
	a->on_altstack = on_altstack(&saved);
	a->is_nested = handlers++ > 0;
	if (info->si_signo != signal)
		atomic_fetch_add(&shared->wrong, 1);
	atomic_store(&a->signal, signal);
	handlers--;
	errno = saved;
}

static void set_handler(int signal)
{
	struct kernel_sigaction raw;

	/* By the C library once: its restorer serves for the raw call. */
	handle_info(SIGUSR1, on_signal, 0);
	must(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &raw, 8L) == 0,
	     "rt_sigaction");
	if (signal % 2 == 0)
		raw.flags |= SA_RESTART;
	if (wants_altstack(signal))
		raw.flags |= SA_ONSTACK;
	if (signal % 5 == 0)
		raw.mask = ~UINT64_C(0);
	must(syscall(SYS_rt_sigaction, signal, &raw, NULL, 8L) == 0,
	     "rt_sigaction");
}

static void *take_signals(void *arg)
{
	const struct timespec nap = {.tv_nsec = 500000};
	size_t i = (size_t)(uintptr_t)arg;
	struct epoll_event event;
	int epoll_fd = epoll_create1(0), pipes[2], r = 0;
	uint64_t every = 0;
	char byte;

	must(pipe(pipes) == 0, "pipe");
	/* Half of the threads have one. */
	if (i % 2 == 0)
		take_altstack();
	must(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &every, NULL, 8L) == 0,
	     "rt_sigprocmask");
	shared->tids[i] = thread_number();
	while (!atomic_load(&ending)) {
		if (i == 0)
			check_registers(20000);
		else if (i == 1)
			r = nanosleep(&nap, NULL);
		else if (i == 2)
			r = epoll_wait(epoll_fd, &event, 1, -1);
		else
			r = (int)read(pipes[0], &byte, 1);
		if (r < 0 && errno != EINTR)
			wrong("a call fails with %s", strerror(errno));
	}
	return NULL;
}

static bool is_real_time(int signal)
{
	return signal >= 32;
}

static void send_by_timer(int signal, int value, pid_t tid)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
				 .sigev_signo = signal,
				 .sigev_value.sival_int = value};
	const struct itimerspec soon = {.it_value.tv_nsec = 1 + value % 200000};
	timer_t timer;

	if (tid != 0) {
		event.sigev_notify = SIGEV_THREAD_ID;
		event.sigev_notify_thread_id = tid;
	}
	/* The C library refuses its own signals. */
	must(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) == 0,
	     "timer_create");
	must(syscall(SYS_timer_settime, timer, 0, &soon, NULL) == 0,
	     "timer_settime");
	for (uint64_t since = now_ns();;) {
		unsigned long n = atomic_load(&shared->arrived);

		if (atomic_load(&shared->arrivals[n % BURST_MAX].signal) != 0 ||
		    n != atomic_load(&shared->sent[WAYS - 1]))
			break;
		patience(since, "a timer's signal does not arrive");
	}
	must(syscall(SYS_timer_delete, timer) == 0, "timer_delete");
}

static void send_one(enum way way, int signal, int value, pid_t tid)
{
	siginfo_t info = {.si_signo = signal, .si_code = SI_QUEUE};
	long r = 0;

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = value;
	switch (way) {
	case BY_KILL:
		r = kill(target, signal);
		break;
	case BY_TGKILL:
		r = syscall(SYS_tgkill, target, tid, signal);
		break;
	case BY_SIGQUEUE:
		r = syscall(SYS_rt_sigqueueinfo, target, signal, &info);
		break;
	case BY_THREAD_QUEUE:
		r = syscall(SYS_rt_tgsigqueueinfo, target, tid, signal, &info);
		break;
	case BY_TIMER:
	case BY_THREAD_TIMER:
	case WAYS:
		send_by_timer(signal, value, tid);
		break;
	}
	if (r != 0)
		give_up("a signal is refused");
}

static void check_arrival(const struct arrival *a, enum way way, int signal,
			  int value, pid_t tid)
{
	static const int codes[] = {SI_USER,  SI_TKILL, SI_QUEUE,
				    SI_QUEUE, SI_TIMER, SI_TIMER};
	bool has_value = way != BY_KILL && way != BY_TGKILL;
	bool by_timer = way == BY_TIMER || way == BY_THREAD_TIMER;
	bool has_altstack =
		a->tid == shared->tids[0] || a->tid == shared->tids[2];

	if (a->signal != signal)
		wrong("signal %d for %d", a->signal, signal);
	if (a->code != codes[way])
		wrong("signal %d: si_code %d, way %d", signal, a->code, way);
	if (has_value && a->value != value)
		wrong("signal %d: value %d for %d", signal, a->value, value);
	if (!by_timer && (a->pid != getpid() || a->uid != (int)getuid()))
		wrong("signal %d: si_pid %d, si_uid %d", signal, a->pid,
		      a->uid);
	if (tid != 0 && a->tid != tid)
		wrong("signal %d: at thread %d, not %d", signal, a->tid, tid);
	/* A nested handler may be on the stack of the other one. */
	if (!a->is_nested && a->on_altstack != (has_altstack && wants_altstack(signal)))
		wrong("signal %d: on the wrong stack", signal);
}

/* A signal, or a burst of a real-time one; then what has come of it. */
static void send_and_check(enum way way, int signal, int n, int value,
			   pid_t tid)
{
	unsigned long before = atomic_load(&shared->arrived);
	uint64_t since = now_ns();

	for (int i = 0; i < BURST_MAX; i++)
		atomic_store(&shared->arrivals[i].signal, 0);
	/* What send_by_timer compares with. */
	atomic_store(&shared->sent[WAYS - 1], before);
	for (int i = 0; i < n; i++)
		send_one(way, signal, value + i, tid);
	for (int i = 0; i < n; i++) {
		struct arrival *a =
			&shared->arrivals[(before + (unsigned)i) % BURST_MAX];

		while (atomic_load(&a->signal) == 0)
			patience(since, "a signal does not arrive");
		check_arrival(a, way, signal, value + i, tid);
	}
	if (atomic_load(&shared->arrived) != before + (unsigned)n)
		wrong("signal %d: %lu arrivals of %d", signal,
		      atomic_load(&shared->arrived) - before, n);
}

static void send_all(uint64_t seed, unsigned long rounds, bool from_inside)
{
	for (unsigned long i = 0; i < rounds; i++) {
		enum way way = (enum way)(draw(&seed) %
					  (from_inside ? WAYS : BY_TIMER));
		/* Each of them in turn, at any moment of the tick. */
		int signal = 1 + (int)(i % NUMBERS);
		int value = (int)(draw(&seed) % 1000000);
		pid_t tid = 0;
		int n = 1;

		run_for(draw(&seed) % 300000);
		if (signal == SIGKILL || signal == SIGSTOP)
			continue;
		if (way == BY_TGKILL || way == BY_THREAD_QUEUE ||
		    way == BY_THREAD_TIMER)
			tid = shared->tids[draw(&seed) % THREADS];
		if (is_real_time(signal) && way == BY_THREAD_QUEUE)
			n = 1 + (int)(draw(&seed) % BURST_MAX);
		send_and_check(way, signal, n, value, tid);
		printf("%d by %d: %d\n", signal, way, n);
	}
}

/* The process that sends from outside; nobody profiles it. */
static pid_t start_sender(uint64_t seed, unsigned long rounds)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!atomic_load(&shared->ready))
		(void)usleep(1000);
	send_all(seed, rounds, false);
	if (n_wrong > 0)
		atomic_fetch_add(&shared->wrong, n_wrong);
	(void)fflush(stdout);
	atomic_store(&shared->done, true);
	/* Its end would be one SIGCHLD too many. */
	for (;;)
		(void)pause();
}

int main(int argc, char **argv)
{
	uint64_t seed, every = ~UINT64_C(0);
	unsigned long rounds;
	pid_t sender;

	if (argc != 3)
		return 2;
	seed = strtoull(argv[1], NULL, 10) * 2 + 1;
	rounds = strtoul(argv[2], NULL, 10);
	shared = share(sizeof(*shared));
	target = getpid();
	setvbuf(stdout, NULL, _IOLBF, 0);
	sender = start_sender(seed, rounds);
	must(sender > 0, "fork");
	for (size_t i = 0; i < THREADS; i++) {
		start(take_signals, (void *)i);
		while (((volatile pid_t *)shared->tids)[i] == 0)
			(void)sched_yield();
	}
	/* After the first thread: the C library sets up its own signals then.
	 */
	for (int signal = 1; signal <= NUMBERS; signal++)
		if (signal != SIGKILL && signal != SIGSTOP)
			set_handler(signal);
	must(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &every, NULL, 8L) == 0,
	     "rt_sigprocmask");
	begin();
	atomic_store(&shared->ready, true);
	while (!atomic_load(&shared->done)) {
		must(waitpid(sender, NULL, WNOHANG) == 0, "no sender");
		(void)usleep(1000);
	}
	send_all(seed + 2, rounds, true);
	printf("arrived %lu\n", atomic_load(&shared->arrived));
	(void)kill(sender, SIGKILL);
	if (atomic_load(&shared->wrong) > 0)
		wrong("%u more", atomic_load(&shared->wrong));
	_exit(finish());
}
