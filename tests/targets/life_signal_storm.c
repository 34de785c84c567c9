/*
 * A storm of signals that are handled, of all kinds at once: queued ones to a
 * thread, which keep their order, and to the process, a timer's, whose handler
 * jumps out, those of a profiler within, faults that a handler steps over as a
 * managed runtime does; and threads in calls that wait, which may end with
 * EINTR only where a handler of theirs has run.
 *
 * Usage: life_signal_storm RATE N. N signals come from another process, RATE in
 * a second (0: as fast as they are handled), and as many more by the way.
 */
#include "signal_storm.h"

#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

static void let_in_those_of(enum role role)
{
	if (role == TAKES_QUEUED)
		mask(SIG_UNBLOCK, TO_THREAD);
	else if (role == TAKES_SHARED || role == TAKES_SHARED_TOO)
		mask(SIG_UNBLOCK, TO_PROCESS);
	if (role <= FAULTS) {
		mask(SIG_UNBLOCK, SIGPROF);
	} else {
		/* Ignored by default: it ends nothing. */
		mask(SIG_UNBLOCK, SIGWINCH);
		if (role > READS)
			mask(SIG_UNBLOCK, SIGUSR2);
	}
}

static void *work(void *arg)
{
	const enum role role = (enum role)(uintptr_t)arg;
	const int epoll_fd = epoll_create1(0);

	take_altstack();
	let_in_those_of(role);
	common->tids[role] = thread_number();
	if (role == JUMPS_OUT)
		jump_out();
	else if (role == READS)
		read_all();
	while (!atomic_load(&ending)) {
		if (role == FAULTS)
			fault();
		else if (role > READS)
			wait_once(role, epoll_fd);
		else
			check_registers(2000);
	}
	return NULL;
}

static void queue(pid_t tid, int signal, unsigned value)
{
	siginfo_t info = {.si_signo = signal, .si_code = SI_QUEUE};
	const pid_t target = getppid();

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = (int)value;
	must((tid != 0 ? syscall(SYS_rt_tgsigqueueinfo, target, tid, signal,
				 &info)
		       : syscall(SYS_rt_sigqueueinfo, target, signal, &info)) ==
		     0,
	     "a signal is refused");
}

/* Not more than a few are on their way. */
static void wait_for_place(atomic_uint *here, unsigned sent)
{
	const uint64_t since_ns = now_ns();

	while (atomic_load(here) + IN_FLIGHT < sent)
		patience(since_ns, "queued signals do not arrive");
}

/* Half of them are counted; those of the others that meet one merge. */
static void send_one(unsigned i)
{
	static const int plain[] = {SIGUSR2, SIGWINCH};
	const unsigned n = i / 8 * 2 + i / 2 % 2;

	switch (i % 8) {
	case 0:
	case 2:
		wait_for_place(&common->queued, n);
		queue(common->tids[TAKES_QUEUED], TO_THREAD, n);
		return;
	case 4:
	case 6:
		wait_for_place(&common->shared, n);
		queue(0, TO_PROCESS, n);
		return;
	case 7:
		must(syscall(SYS_tgkill, getppid(), common->tids[READS],
			     SIGUSR1) == 0,
		     "tgkill");
		return;
	}
	must(syscall(SYS_tgkill, getppid(),
		     common->tids[READS + 1 + i / 8 % (ROLES - READS - 1)],
		     plain[i / 2 % 2]) == 0,
	     "tgkill");
}

static void send_all(unsigned rate, unsigned n)
{
	uint64_t start_ns, since_ns;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)close(pipes[1]);
	while (!atomic_load(&common->ready))
		(void)usleep(1000);
	start_ns = now_ns();
	for (unsigned i = 0; i < n; i++) {
		/* Ahead of its time: it is the rate that is asked for. */
		while (rate != 0 &&
		       now_ns() - start_ns < i * (UINT64_C(1000000000) / rate))
			(void)usleep(200);
		send_one(i);
	}
	since_ns = now_ns();
	while (atomic_load(&common->queued) < n / 4 ||
	       atomic_load(&common->shared) < n / 4)
		patience(since_ns, "queued signals do not arrive");
	fprintf(stderr, "%u signals in %lu ms\n", n,
		(now_ns() - start_ns) / 1000000);
	atomic_store(&common->done, true);
	/* Its end would be one signal more. */
	for (;;)
		(void)pause();
}

static void handle_all(void)
{
	handle_info(TO_THREAD, on_queued, SA_ONSTACK);
	handle_info(TO_PROCESS, on_shared, SA_RESTART);
	handle_info(BY_TIMER, on_timer, 0);
	handle_info(SIGUSR1, on_plain, SA_RESTART);
	handle_info(SIGUSR2, on_plain, 0);
	handle_info(SIGPROF, on_prof, SA_RESTART);
	handle_info(SIGSEGV, on_fault, SA_ONSTACK);
	handle_info(SIGTRAP, on_fault, 0);
	handle_info(SIGILL, on_fault, SA_ONSTACK);
}

static void prepare(void)
{
	const struct timeval two_ms = {.tv_usec = 2000};

	common = share(sizeof(*common));
	must(pipe(pipes) == 0, "pipe");
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
	must(setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &two_ms,
			sizeof(two_ms)) == 0,
	     "setsockopt");
}

static void start_threads(pthread_t threads[ROLES])
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGTRAP);
	sigdelset(&all, SIGILL);
	must(sigprocmask(SIG_BLOCK, &all, NULL) == 0, "sigprocmask");
	for (uintptr_t i = 0; i < ROLES; i++)
		threads[i] = start(work, (void *)i);
	for (size_t i = 0; i < ROLES; i++)
		while (((volatile pid_t *)common->tids)[i] == 0)
			(void)sched_yield();
}

int main(int argc, char **argv)
{
	const struct itimerval often = {.it_interval.tv_usec = 1000,
					.it_value.tv_usec = 1000};
	const struct itimerval never = {.it_value.tv_usec = 0};
	pthread_t threads[ROLES];
	unsigned char next = 0;
	unsigned rate, n;

	if (argc != 3)
		return 2;
	rate = (unsigned)strtoul(argv[1], NULL, 10);
	n = (unsigned)strtoul(argv[2], NULL, 10) / 8 * 8;
	must(n / 4 <= N_MAX, "too many signals");
	prepare();
	handle_all();
	sender = fork();
	must(sender >= 0, "fork");
	if (sender == 0)
		send_all(rate, n);
	start_threads(threads);
	begin();
	must(setitimer(ITIMER_PROF, &often, NULL) == 0, "setitimer");
	atomic_store(&common->ready, true);
	while (!atomic_load(&common->done)) {
		must(waitpid(sender, NULL, WNOHANG) == 0, "no sender");
		must(write(pipes[1], &next, 1) == 1, "write");
		next++;
		(void)usleep(200);
	}
	must(setitimer(ITIMER_PROF, &never, NULL) == 0, "setitimer");
	atomic_store(&ending, true);
	(void)close(pipes[1]);
	for (size_t i = 0; i < ROLES; i++)
		join(threads[i]);
	printf("queued %u, shared %u, SIGPROF: %s\n",
	       atomic_load(&common->queued), atomic_load(&common->shared),
	       atomic_load(&profs) > 0 ? "some" : "none");
	(void)kill(sender, SIGKILL);
	_exit(finish());
}
