#include "daemon/capture/realtime.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "daemon/common/log.h"
#include "lib/base/clock.h"

/*
 * A real-time thread that runs this long without a sleep has a fault: the kernel ends it by
 * SIGXCPU, which names the cause, and the broker starts another one. At the hard limit the signal
 * would be SIGKILL, so that limit is higher. A thread with so much work that it never sleeps has no
 * fault: it sleeps for a moment each time that it has used a processor for SLEEP_EVERY_NS.
 */
#define REALTIME_US_MAX	     500000
#define REALTIME_US_HARD_MAX (2 * REALTIME_US_MAX)
#define SLEEP_EVERY_NS	     (REALTIME_US_MAX * NS_PER_US / 5)
/* Long enough that the thread is asleep before the timer expires. */
#define SLEEP_NS (100 * (long)NS_PER_US)

/*
 * The share of a processor that the tracer may use at real-time priority in each window. Beyond it,
 * no ticks are given until the window ends, and stops are handled at normal priority: the machine
 * goes on, whatever keeps the tracer busy.
 */
#define SHARE_WINDOW_NS (100 * NS_PER_MS)
#define SHARE_NS	(SHARE_WINDOW_NS / 2)
/* How often the CPU clock is read, which costs a system call. */
#define SHARE_READ_NS (5 * NS_PER_MS)

/*
 * The nice value without SCHED_FIFO. A thread that was interrupted stops when it gets a processor,
 * and goes on when the tracer gets one.
 */
#define SAMPLER_NICE (-20)

/* Of SCHED_FIFO: sched(7). */
#define PRIORITY_MIN 1
#define PRIORITY_MAX 99

/* Sets SCHED_FIFO with this priority; 0: SCHED_OTHER. Returns false if the kernel refuses. */
static bool set_fifo(int priority)
{
	const struct sched_param param = {.sched_priority = priority};
	const int policy = priority > 0 ? SCHED_FIFO : SCHED_OTHER;

	return sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &param) == 0;
}

void realtime_start(struct realtime *r)
{
	const struct rlimit limit = {.rlim_cur = REALTIME_US_MAX, .rlim_max = REALTIME_US_HARD_MAX};

	const bool first = setpriority(PRIO_PROCESS, 0, SAMPLER_NICE) == 0;

	*r = (struct realtime){.scheduler = SCHEDULER_NORMAL};
	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	if (setrlimit(RLIMIT_RTTIME, &limit) == 0 && set_fifo(PRIORITY_MIN)) {
		log_debug("sampling runs under SCHED_FIFO %d", PRIORITY_MIN);
		r->priority = PRIORITY_MIN;
		r->scheduler = SCHEDULER_FIFO;
		return;
	}
	if (first) {
		log_debug("sampling runs at nice %d: SCHED_FIFO is refused", SAMPLER_NICE);
		r->scheduler = SCHEDULER_NICE;
	} else {
		log_debug("sampling runs at normal priority: SCHED_FIFO and a "
			  "higher priority are refused");
	}
}

/* Sets or clears exceeded, and the priority if the tracer is real-time. */
static void exceed(struct realtime *r, bool exceeded)
{
	r->exceeded = exceeded;
	if (r->scheduler == SCHEDULER_FIFO)
		(void)set_fifo(exceeded ? 0 : r->priority);
}

static void stay_above(struct realtime *r, int priority)
{
	const int above = priority < PRIORITY_MAX ? priority + 1 : PRIORITY_MAX;

	if (above == r->priority || r->scheduler != SCHEDULER_FIFO)
		return;
	r->priority = above;
	if (!r->exceeded && !set_fifo(above))
		log_debug("SCHED_FIFO %d is refused: sampling keeps the priority that it has",
			  above);
	else
		log_debug("sampling runs under SCHED_FIFO %d", above);
}

/* After a sleep the kernel's limit starts anew: enqueue_task_rt() in kernel/sched/rt.c. */
static void sleep_for_limit(struct realtime *r, uint64_t used)
{
	const struct timespec moment = {.tv_nsec = SLEEP_NS};

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
	r->slept_cpu_ns = used;
}

/* Returns false while no limit can have been reached, so that the CPU clock is not read. */
static bool is_due(const struct realtime *r, uint64_t now_ns)
{
	/* The tracer is the only thread that runs. */
	const uint64_t most = r->seen_cpu_ns + (now_ns - r->read_ns);

	if (now_ns - r->read_ns < SHARE_READ_NS)
		return false;
	return now_ns - r->window_ns >= SHARE_WINDOW_NS ||
	       most - r->slept_cpu_ns >= SLEEP_EVERY_NS ||
	       (!r->exceeded && most - r->window_cpu_ns > SHARE_NS);
}

void realtime_keep(struct realtime *r, int priority, uint64_t now_ns)
{
	uint64_t used;

	stay_above(r, priority);
	if (!is_due(r, now_ns))
		return;
	used = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	r->read_ns = now_ns;
	r->seen_cpu_ns = used;
	if (used - r->slept_cpu_ns >= SLEEP_EVERY_NS)
		sleep_for_limit(r, used);
	if (now_ns - r->window_ns >= SHARE_WINDOW_NS) {
		r->window_ns = now_ns;
		r->window_cpu_ns = used;
		if (r->exceeded)
			exceed(r, false);
	} else if (!r->exceeded && used - r->window_cpu_ns > SHARE_NS) {
		exceed(r, true);
		log_debug("sampling has used more than half a processor in 100 ms: no thread is "
			  "sampled for %u ms",
			  (unsigned int)((SHARE_WINDOW_NS - (now_ns - r->window_ns)) / NS_PER_MS));
	}
}
