/*
 * near PID HZ WAY: tracers that differ from bare (bare.c) in one thing: how they come to the stop
 * of a thread that runs on another processor. Of each thread that stops they read what bare reads.
 * WAY:
 * - poll: polls for the stops before it sleeps.
 * - go: goes to the processor of each running thread in turn, and interrupts the thread there.
 *   It can have at most as many threads as there are processors.
 * - own: a tracer thread for each processor. Each tracer thread traces its share of the target's
 *   threads, and sleeps on the processor on which the first thread of its share ran last.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/procfs.h"
#include "lib/base/util.h"
#include "tests/bench/tracer.h"

/* As POLLING_NS of the daemon, which polls only where that is of use. */
#define POLL_NS (50 * NS_PER_US)

#define STAT_PROCESSOR 39 /* proc(5), stat: the processor on which the thread ran last */

struct traced {
	pid_t tid;
	int stat_fd;
	bool pending;
};

/* One tracer thread and its threads. */
struct walker {
	struct traced *of;
	size_t n, n_pending;
	int cpu; /* to which the tracer is bound; -1: to none */
	uint64_t period_ns;
	struct tracer count;
	pthread_t thread;
};

static struct walker walkers[CPU_SETSIZE];
static __thread struct walker *me;

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

/* Returns the processor on which the thread runs, or -1. */
static int processor(const struct traced *t)
{
	char text[512];
	const char *field;
	ssize_t n = pread(t->stat_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return -1;
	text[n] = '\0';
	field = procfs_stat_field(text, STAT_PROCESSOR);
	return field != NULL ? (int)strtol(field, NULL, 10) : -1;
}

static void go_to(struct walker *w, int cpu)
{
	cpu_set_t cpus;

	if (cpu < 0 || cpu == w->cpu)
		return;
	CPU_ZERO(&cpus);
	CPU_SET((unsigned int)cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) == 0)
		w->cpu = cpu;
}

static void interrupt(struct walker *w, struct traced *t)
{
	t->pending = true;
	w->n_pending++;
	(void)ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
}

/* Waits for one stop, and takes its sample. */
static void take(struct walker *w, int flags)
{
	int status;
	pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD | flags);
	size_t i = 0;

	if (tid < 0 && errno != EINTR)
		fail("waitpid");
	if (tid <= 0 || !WIFSTOPPED(status))
		return;
	tracer_sample(&w->count, tid);
	(void)ptrace(PTRACE_CONT, tid, NULL, NULL);
	while (w->of[i].tid != tid)
		i++;
	w->n_pending -= w->of[i].pending;
	w->of[i].pending = false;
}

static void count_ticks(struct walker *w, uint64_t ticks)
{
	w->count.ticks += ticks;
	w->count.expected += ticks * w->n;
}

/* Interrupts all threads in the handler, as bare does. */
static void on_tick(int signal, siginfo_t *info, void *context)
{
	const uint64_t ticks = 1 + (uint64_t)info->si_overrun;

	(void)signal;
	(void)context;
	count_ticks(me, ticks);
	for (size_t i = 0; i < me->n; i++) {
		if (me->of[i].pending)
			me->count.filled += ticks;
		else
			interrupt(me, &me->of[i]);
	}
}

static void start_ticks(void)
{
	struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	const struct timespec period = {.tv_nsec = (long)me->period_ns};
	const struct itimerspec times = {.it_interval = period, .it_value = period};
	timer_t timer;

	event._sigev_un._tid = gettid();
	if (sigaction(SIGALRM, &action, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ||
	    timer_settime(timer, 0, &times, NULL) < 0)
		fail("timer");
}

static void attach(void)
{
	tracer_raise_priority();
	for (size_t i = 0; i < me->n; i++)
		tracer_attach(me->of[i].tid);
}

static void poll_for_stops(void)
{
	uint64_t end_ns;

	attach();
	start_ticks();
	while (!tracer_is_over()) {
		take(me, 0);
		end_ns = clock_mono_ns() + POLL_NS;
		while (me->n_pending > 0 && clock_mono_ns() < end_ns)
			take(me, WNOHANG);
	}
}

static void *own(void *arg)
{
	me = arg;
	attach();
	start_ticks();
	while (!tracer_is_over()) {
		take(me, 0);
		if (me->n_pending == 0)
			go_to(me, processor(&me->of[0]));
	}
	return NULL;
}

static void go_round(void)
{
	const int n = get_nprocs(), from = me->cpu < 0 ? 0 : me->cpu;
	int cpus[CPU_SETSIZE];

	for (size_t i = 0; i < me->n; i++)
		cpus[i] = processor(&me->of[i]);
	for (int c = from; c < from + n; c++) {
		for (size_t i = 0; i < me->n; i++)
			if (cpus[i] == c % n) {
				go_to(me, c % n);
				interrupt(me, &me->of[i]);
			}
		while (me->n_pending > 0 && !tracer_is_over())
			take(me, 0);
	}
	if (me->n == 1)
		go_to(me, processor(&me->of[0]));
}

static void go(void)
{
	uint64_t next_ns = clock_mono_ns() + me->period_ns, ticks;
	struct timespec at;

	attach();
	while (!tracer_is_over()) {
		at = (struct timespec){.tv_sec = (time_t)(next_ns / NS_PER_SEC),
				       .tv_nsec = (long)(next_ns % NS_PER_SEC)};
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
			continue;
		ticks = 1 + (clock_mono_ns() - next_ns) / me->period_ns;
		count_ticks(me, ticks);
		next_ns += ticks * me->period_ns;
		go_round();
	}
}

/* Gives each of n walkers its threads. */
static void share_out(const struct tracer *tracer, const char *pid, size_t n, uint64_t period_ns)
{
	char path[64];

	for (size_t k = 0; k < n; k++) {
		struct walker *w = &walkers[k];

		w->cpu = -1;
		w->period_ns = period_ns;
		w->of = calloc(tracer->n + 1, sizeof(*w->of));
		if (w->of == NULL)
			fail("calloc");
		for (size_t i = k; i < tracer->n; i += n) {
			struct traced *t = &w->of[w->n++];

			t->tid = tracer->tids[i];
			(void)snprintf(path, sizeof(path), "/proc/%s/task/%d/stat", pid, t->tid);
			t->stat_fd = open(path, O_RDONLY | O_CLOEXEC);
		}
	}
}

static void run_owners(size_t n, struct tracer *sum)
{
	while (n > 0 && walkers[n - 1].n == 0)
		n--;
	for (size_t k = 0; k < n; k++)
		if (pthread_create(&walkers[k].thread, NULL, own, &walkers[k]) != 0)
			fail("pthread_create");
	/* The kernel may deliver SIGTERM to another thread: then pause(2) would not end here. */
	while (!tracer_is_over())
		(void)usleep(10000);
	for (size_t k = 0; k < n; k++) {
		const struct tracer *c = &walkers[k].count;

		(void)pthread_kill(walkers[k].thread, SIGTERM);
		(void)pthread_join(walkers[k].thread, NULL);
		sum->ticks = max_u64(sum->ticks, c->ticks);
		sum->expected += c->expected;
		sum->stops += c->stops;
		sum->filled += c->filled;
	}
}

int main(int argc, char **argv)
{
	const char *way = argc == 4 ? argv[3] : "";
	const bool owners = strcmp(way, "own") == 0;
	uint64_t period_ns;
	struct tracer tracer = tracer_start(argc - 1, argv, &period_ns);

	if (strcmp(way, "go") == 0 && tracer.n > (size_t)get_nprocs())
		return 2;
	share_out(&tracer, argv[1], owners ? (size_t)get_nprocs() : 1, period_ns);
	tracer_say_attached();
	me = &walkers[0];
	if (owners) {
		run_owners((size_t)get_nprocs(), &tracer);
		tracer_finish(&tracer);
	}
	if (strcmp(way, "poll") == 0)
		poll_for_stops();
	else
		go();
	tracer_finish(&me->count);
}
