/*
 * The rules of signal(7) and sigaction(2) by which signals are kept back,
 * ordered and handled: blocked ones arrive in order when they are let in, a
 * standard one that is pending merges, SA_NODEFER nests, SA_RESETHAND handles
 * once, sigwaitinfo and signalfd take them with their siginfo.
 *
 * Usage: life_order SEED N. Each N times, while the thread itself keeps busy.
 */
#include "life.h"

#include <sys/signalfd.h>

#define BATCH 24
#define DEPTH 5

static struct {
	int signal, value, code;
} seen[BATCH];
static volatile sig_atomic_t n_seen, depth, deepest;

static void note(int signal, siginfo_t *info, void *unused)
{
	(void)unused;
	if (n_seen < BATCH) {
		seen[n_seen].signal = signal;
		seen[n_seen].value = info->si_value.sival_int;
		seen[n_seen].code = info->si_code;
	}
	n_seen = n_seen + 1;
}

static void set_handler(int signal, void (*handler)(int, siginfo_t *, void *),
			int flags)
{
	struct sigaction action = {.sa_sigaction = handler,
				   .sa_flags = SA_SIGINFO | flags};

	/* One after the other: the order is that of their delivery. */
	if (!(flags & SA_NODEFER))
		sigfillset(&action.sa_mask);
	must(sigaction(signal, &action, NULL) == 0, "sigaction");
}

/*
 * A batch of real-time signals, some to the thread and some to the process. The
 * thread's own come first, the lowest number first, each number's in the order
 * in which they were sent.
 */
static void real_time_order(uint64_t *seed)
{
	struct {
		int signal, value;
		bool of_process;
	} sent[BATCH];

	n_seen = 0;
	for (int i = 0; i < BATCH; i++) {
		siginfo_t info = {.si_code = SI_QUEUE};

		sent[i].signal = SIGRTMIN + (int)(draw(seed) % 8);
		sent[i].value = (int)(draw(seed) % 1000000);
		sent[i].of_process = draw(seed) % 2 == 0;
		info.si_signo = sent[i].signal;
		info.si_pid = getpid();
		info.si_value.sival_int = sent[i].value;
		must((sent[i].of_process
			      ? syscall(SYS_rt_sigqueueinfo, getpid(),
					sent[i].signal, &info)
			      : syscall(SYS_rt_tgsigqueueinfo, getpid(),
					thread_number(), sent[i].signal,
					&info)) == 0,
		     "sigqueueinfo");
		run_for(draw(seed) % 20000);
	}
	if (n_seen != 0)
		wrong("%d blocked signals arrive", (int)n_seen);
}

static void check_order(uint64_t *seed)
{
	uint64_t again = *seed;
	sigset_t all, before, pending;
	int expected = 0;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	real_time_order(seed);
	(void)sigpending(&pending);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (n_seen != BATCH)
		wrong("%d of %d blocked signals arrive", (int)n_seen, BATCH);
	/* The same numbers once more tell what was sent. */
	for (int of_process = 0; of_process < 2; of_process++) {
		for (int signal = SIGRTMIN; signal < SIGRTMIN + 8; signal++) {
			uint64_t s = again;

			for (int i = 0; i < BATCH; i++) {
				int number = SIGRTMIN + (int)(draw(&s) % 8);
				int value = (int)(draw(&s) % 1000000);
				int to_process = draw(&s) % 2 == 0;

				(void)draw(&s);
				if (number != signal ||
				    to_process != of_process)
					continue;
				if (seen[expected].signal != signal ||
				    seen[expected].value != value ||
				    seen[expected].code != SI_QUEUE)
					wrong("number %d is signal %d, value "
					      "%d, not %d, %d",
					      expected, seen[expected].signal,
					      seen[expected].value, signal,
					      value);
				if (!sigismember(&pending, signal))
					wrong("%d was not pending", signal);
				expected++;
			}
		}
	}
}

/* A standard signal that is pending already merges with the next. */
static void check_merging(void)
{
	sigset_t pending;

	n_seen = 0;
	mask(SIG_BLOCK, SIGUSR1);
	for (int i = 0; i < 3; i++) {
		(void)kill(getpid(), SIGUSR1);
		run_for(5000);
	}
	(void)sigpending(&pending);
	if (!sigismember(&pending, SIGUSR1) || n_seen != 0)
		wrong("a blocked signal is not pending");
	mask(SIG_UNBLOCK, SIGUSR1);
	if (n_seen != 1 || seen[0].code != SI_USER)
		wrong("three of a kind arrive %d times", (int)n_seen);
}

static void nest(int signal, siginfo_t *info, void *unused)
{
	(void)info;
	(void)unused;
	depth = depth + 1;
	if (depth > deepest)
		deepest = depth;
	run_for(3000);
	if (depth < DEPTH)
		(void)raise(signal);
	depth = depth - 1;
}

static void check_nesting(void)
{
	deepest = 0;
	(void)raise(SIGUSR2);
	if (deepest != DEPTH || depth != 0)
		wrong("SA_NODEFER: %d deep", (int)deepest);
}

static void check_reset(void)
{
	struct sigaction now;

	n_seen = 0;
	/* Its default is to be ignored, so that the second does nothing. */
	set_handler(SIGURG, note, (int)SA_RESETHAND);
	(void)kill(getpid(), SIGURG);
	run_for(5000);
	(void)kill(getpid(), SIGURG);
	run_for(5000);
	(void)sigaction(SIGURG, NULL, &now);
	if (n_seen != 1 || now.sa_handler != SIG_DFL)
		wrong("SA_RESETHAND: handled %d times", (int)n_seen);
}

static void check_taking(uint64_t *seed)
{
	union sigval value = {.sival_int = (int)(draw(seed) % 1000000)};
	struct signalfd_siginfo record;
	siginfo_t info;
	sigset_t set, before;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, &before);
	must(sigqueue(getpid(), SIGRTMIN + 1, value) == 0, "sigqueue");
	run_for(5000);
	if (sigwaitinfo(&set, &info) != SIGRTMIN + 1 ||
	    info.si_code != SI_QUEUE || info.si_pid != getpid() ||
	    info.si_value.sival_int != value.sival_int)
		wrong("sigwaitinfo: signal %d, code %d, value %d",
		      info.si_signo, info.si_code, info.si_value.sival_int);
	/* Ignored by default, and blocked: it is there to be taken. */
	(void)kill(getpid(), SIGCHLD);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	run_for(5000);
	if (read(fd, &record, sizeof(record)) != (ssize_t)sizeof(record) ||
	    record.ssi_signo != SIGCHLD || record.ssi_code != SI_USER ||
	    record.ssi_pid != (uint32_t)getpid())
		wrong("signalfd: signal %u, code %d", record.ssi_signo,
		      record.ssi_code);
	(void)close(fd);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

int main(int argc, char **argv)
{
	uint64_t seed;
	long rounds;

	if (argc != 3)
		return 2;
	seed = strtoull(argv[1], NULL, 10) * 2 + 1;
	rounds = strtol(argv[2], NULL, 10);
	for (int signal = SIGRTMIN; signal < SIGRTMIN + 8; signal++)
		set_handler(signal, note, 0);
	set_handler(SIGUSR1, note, 0);
	set_handler(SIGUSR2, nest, SA_NODEFER);
	begin();
	for (long i = 0; i < rounds; i++) {
		check_order(&seed);
		check_merging();
		check_nesting();
		check_reset();
		check_taking(&seed);
	}
	printf("rounds %ld\n", rounds);
	return finish();
}
