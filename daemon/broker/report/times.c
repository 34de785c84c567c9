#include "daemon/broker/report/times.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "lib/base/small_file.h"
#include "lib/base/util.h"

/* In a short run one event, as threads that begin untraced, makes up much of the time. */
#define COMPARED_MIN_NS (5 * NS_PER_SEC)

/* Less ready time is not worth a line. */
#define READY_MIN_NS NS_PER_SEC

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static unsigned int percent(uint64_t part, uint64_t all)
{
	return all == 0 ? 0 : (unsigned int)(100.0 * (double)part / (double)all + 0.5);
}

bool times_parse(const char *text, struct processor_times *ret)
{
	/* user, nice, system, idle, iowait, irq, softirq, steal: proc(5) */
	unsigned long long n[8];

	if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &n[0], &n[1], &n[2], &n[3],
		   &n[4], &n[5], &n[6], &n[7]) != 8)
		return false;
	*ret = (struct processor_times){.idle = n[3] + n[4], .stolen = n[7]};
	for (size_t i = 0; i < array_size(n); i++)
		ret->all += n[i];
	return true;
}

static bool read_processors(struct processor_times *ret)
{
	char text[512];

	return small_file_read(AT_FDCWD, "/proc/stat", text, sizeof(text)) == 0 &&
	       times_parse(text, ret);
}

static uint64_t throttled_so_far(const struct times *t)
{
	return cpu_group_throttled_ns(t->groups, strlen(t->groups), CPU_GROUP_MOUNT);
}

/* Returns how many processors the process may use; 0: all of them, or not known. */
static unsigned int bound_to(int32_t pid)
{
	cpu_set_t set;
	long n;

	if (sched_getaffinity(pid, sizeof(set), &set) < 0)
		return 0;
	n = CPU_COUNT(&set);
	return n < sysconf(_SC_NPROCESSORS_ONLN) ? (unsigned int)n : 0;
}

void times_begin(struct times *t, int32_t pid)
{
	char path[32];

	*t = (struct times){.is_begun = true};
	(void)read_processors(&t->processors);
	t->allowed_processors = bound_to(pid);
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	/* Without groups no time is known. */
	(void)!small_file_read(AT_FDCWD, path, t->groups, sizeof(t->groups));
	t->throttled_ns = throttled_so_far(t);
}

/*
 * A tick tells all or nothing of its length. The variance of the sum is at most that of ticks that
 * are independent, and rare: the length of a tick times the sum.
 */
bool times_differ(const struct capture_counters *c, uint32_t rate_hz)
{
	const double told = (double)c->compared_running_ns, counted = (double)c->compared_cpu_ns;
	const double difference = told - counted, variance = 1e9 / (double)rate_hz * counted;

	if (c->compared_cpu_ns < COMPARED_MIN_NS && c->compared_running_ns < COMPARED_MIN_NS)
		return false;
	return difference * difference > .01 * counted * counted &&
	       difference * difference > 9 * variance;
}

void times_cause(const struct times *t, uint64_t ready_ns, char *ret, size_t size)
{
	const struct processor_times *p = &t->processors;
	const unsigned int busy = percent(p->all - p->idle, p->all),
			   stolen = percent(p->stolen, p->all);

	if (t->throttled_ns > ready_ns / 10)
		(void)snprintf(ret, size, "its control group was throttled for %.1f s (cpu.stat)",
			       seconds(t->throttled_ns));
	else if (stolen >= 10)
		(void)snprintf(ret, size,
			       "the host of this virtual machine kept the processors for %u %% of "
			       "the time (steal)",
			       stolen);
	else if (t->allowed_processors > 0)
		(void)snprintf(ret, size,
			       "it is bound to %u of the processors, which together were busy for "
			       "%u %% of the time",
			       t->allowed_processors, busy);
	else
		(void)snprintf(ret, size, "the processors were busy for %u %% of the time", busy);
}

static void log_ready(const struct times *t, const struct capture_counters *c)
{
	struct times change = *t;
	struct processor_times *now = &change.processors;
	char cause[160];

	if (c->ready_ns < READY_MIN_NS || c->ready_ns < (c->ready_ns + c->running_ns) / 10 ||
	    !t->is_begun || !read_processors(now))
		return;
	now->all -= t->processors.all;
	now->idle -= t->processors.idle;
	now->stolen -= t->processors.stolen;
	change.throttled_ns = throttled_so_far(t) - t->throttled_ns;
	times_cause(&change, c->ready_ns, cause, sizeof(cause));
	log_info("threads had to wait for a processor (ready) for %u %% of the time in which they "
		 "could have run: %s",
		 percent(c->ready_ns, c->ready_ns + c->running_ns), cause);
}

void times_log(const struct times *t, const struct capture_counters *c, uint32_t rate_hz,
	       bool is_quiet)
{
	if (times_differ(c, rate_hz))
		log_warning("running times are not right: in the seconds without a missed sample "
			    "the samples add up to %.1f s, and the kernel counted %.1f s of CPU "
			    "time; please report this, with the file of --stats",
			    seconds(c->compared_running_ns), seconds(c->compared_cpu_ns));
	if (!is_quiet)
		log_ready(t, c);
}
