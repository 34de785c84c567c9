/*
 * target [busy=N] [sleepers=N] [tickers=N] [waiters=N] [free=1]: the target of the benchmarks,
 * which measures how it is disturbed.
 *
 * Starts N threads of each kind (target.h); waiters: N of each kind of wait. If there are at most
 * as many busy threads as processors, each is bound to a processor of its own, unless free=1. All
 * threads have the same stack of 30 frames.
 *
 * Prints "ready PID" when all threads run, and at each SIGUSR1 a line of JSON with the counters
 * since the start. Runs until it is killed.
 */
#include "tests/bench/target.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#define THREADS_MAX 4096
#define STACK_BYTES (64u * 1024)

static const char *const gap_names[GAPS] = {"stop", "stop_net", "preempted", "other"};
static const char *const wait_names[WAITS] = {"epoll_wait", "nanosleep", "poll"};

static struct worker *workers[THREADS_MAX];
static unsigned int n_workers;
static pthread_barrier_t all_run;
static bool is_free; /* the option free */

/*
 * The stack of a busy thread has 30 frames: busy(), 26 links, run(), and libc's start_thread and
 * clone. The links have frames of different sizes, so that each needs rows of its own.
 */
#define LINK(n, next)                                       \
	static NOINLINE uint64_t link_##n(struct worker *w) \
	{                                                   \
		volatile uint64_t room[2 + (n)*5 % 11];     \
                                                            \
		room[0] = n;                                \
		(void)next(w);                              \
		return room[0];                             \
	}

static NOINLINE uint64_t link_0(struct worker *w)
{
	w->work(w);
	return w->index;
}

LINK(1, link_0)
LINK(2, link_1)
LINK(3, link_2)
LINK(4, link_3)
LINK(5, link_4)
LINK(6, link_5)
LINK(7, link_6)
LINK(8, link_7)
LINK(9, link_8)
LINK(10, link_9)
LINK(11, link_10)
LINK(12, link_11)
LINK(13, link_12)
LINK(14, link_13)
LINK(15, link_14)
LINK(16, link_15)
LINK(17, link_16)
LINK(18, link_17)
LINK(19, link_18)
LINK(20, link_19)
LINK(21, link_20)
LINK(22, link_21)
LINK(23, link_22)
LINK(24, link_23)
LINK(25, link_24)

static void *run(void *arg)
{
	struct worker *w = arg;
	cpu_set_t cpus;

	if (w->cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET((unsigned int)w->cpu, &cpus);
		if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
			die("sched_setaffinity");
	}
	w->schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	(void)pthread_barrier_wait(&all_run);
	(void)link_25(w);
	return NULL;
}

/* Returns the nth processor of this process's affinity mask, or -1. */
static int nth_cpu(unsigned long n)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		die("sched_getaffinity");
	for (unsigned int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &cpus) && n-- == 0)
			return (int)i;
	return -1;
}

static void make(unsigned long n, const char *name, void (*work)(struct worker *w))
{
	bool bind = work == busy && !is_free && n > 0 && nth_cpu(n - 1) >= 0;
	pthread_attr_t attr;
	pthread_t thread;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (unsigned long i = 0; i < n; i++) {
		struct worker *w = calloc(1, sizeof(*w));

		if (w == NULL)
			die("calloc");
		w->work = work;
		w->index = n_workers;
		w->wait = (enum wait)(n_workers % WAITS);
		w->cpu = bind ? nth_cpu(i) : -1;
		workers[n_workers++] = w;
		if (pthread_create(&thread, &attr, run, w) != 0)
			die("pthread_create");
		(void)pthread_setname_np(thread, name);
	}
	(void)pthread_attr_destroy(&attr);
}

static void print_gaps(void)
{
	for (int kind = 0; kind < GAPS; kind++) {
		uint64_t sum = 0, ns = 0;
		const char *separator = "";

		printf(", \"%s\": {\"buckets\": {", gap_names[kind]);
		for (size_t b = 0; b < GAP_BUCKETS; b++) {
			uint64_t n = 0;

			for (unsigned int i = 0; i < n_workers; i++)
				n += get(&workers[i]->gaps[kind][b]);
			if (n > 0) {
				printf("%s\"%zu\": %llu", separator, b, (unsigned long long)n);
				separator = ", ";
			}
			sum += n;
		}
		for (unsigned int i = 0; i < n_workers; i++)
			ns += get(&workers[i]->gap_ns[kind]);
		printf("}, \"n\": %llu, \"ns\": %llu}", (unsigned long long)sum,
		       (unsigned long long)ns);
	}
}

static void print_waits(void)
{
	for (int kind = 0; kind < WAITS; kind++) {
		uint64_t n = 0, ns = 0, longest = 0;

		for (unsigned int i = 0; i < n_workers; i++) {
			struct worker *w = workers[i];

			if ((int)w->wait != kind)
				continue;
			n += get(&w->waits);
			ns += get(&w->wait_ns);
			longest = max_u64(longest, get(&w->wait_max_ns));
			set(&w->wait_max_ns, 0);
		}
		printf(", \"%s\": {\"n\": %llu, \"ns\": %llu, "
		       "\"max_ns\": %llu}",
		       wait_names[kind], (unsigned long long)n, (unsigned long long)ns,
		       (unsigned long long)longest);
	}
}

static void print_all(void)
{
	uint64_t rounds = 0;

	for (unsigned int i = 0; i < n_workers; i++)
		rounds += get(&workers[i]->rounds);
	printf("{\"time_ns\": %llu, \"cpu_ns\": %llu, \"rounds\": %llu",
	       (unsigned long long)clock_mono_ns(),
	       (unsigned long long)clock_read_ns(CLOCK_PROCESS_CPUTIME_ID),
	       (unsigned long long)rounds);
	print_gaps();
	print_waits();
	printf("}\n");
	(void)fflush(stdout);
}

static unsigned long option(int argc, char **argv, const char *name)
{
	size_t length = strlen(name);

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
			return strtoul(argv[i] + length + 1, NULL, 10);
	return 0;
}

int main(int argc, char **argv)
{
	const unsigned long n_busy = option(argc, argv, "busy");
	const unsigned long sleepers = option(argc, argv, "sleepers");
	const unsigned long tickers = option(argc, argv, "tickers");
	const unsigned long waiters = option(argc, argv, "waiters") * WAITS;
	sigset_t signals;
	int signal;

	if (n_busy + sleepers + tickers + waiters > THREADS_MAX)
		return 2;
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGUSR1);
	/* All threads block the signal; the first one receives it by sigwait(3). */
	if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0 ||
	    pthread_barrier_init(&all_run, NULL,
				 (unsigned int)(n_busy + sleepers + tickers + waiters + 1)) != 0)
		die("set up");
	is_free = option(argc, argv, "free") != 0;
	gaps_calibrate();
	make(n_busy, "busy", busy);
	make(sleepers, "sleeper", sleep_on);
	make(tickers, "ticker", tick);
	make(waiters, "waiter", wait_often);
	(void)pthread_barrier_wait(&all_run);
	printf("ready %ld\n", (long)getpid());
	(void)fflush(stdout);
	for (;;)
		if (sigwait(&signals, &signal) == 0)
			print_all();
}
