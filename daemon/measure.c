#include "daemon/measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "daemon/broker.h"
#include "daemon/child.h"
#include "daemon/process.h"
#include "daemon/targets.h"
#include "lib/base/clock.h"
#include "lib/base/small_file.h"

#define MEASURE_NS (1 * NS_PER_SEC)

/* 100 % is 10^8; a thousand processors for a second fit by far. */
#define MILLIONTHS_PER_ONE UINT64_C(100000000)

uint64_t measure_percent(const struct measured *from, const struct measured *to)
{
	uint64_t time_ns = to->time_ns - from->time_ns;

	if (to->time_ns <= from->time_ns || to->cpu_ns <= from->cpu_ns)
		return 0;
	return (uint64_t)((double)(to->cpu_ns - from->cpu_ns) /
			  (double)time_ns * (double)MILLIONTHS_PER_ONE);
}

/* All threads, those that have ended too, to the nanosecond. */
static int read_cpu(int32_t pid, uint64_t *ret_ns)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 ||
	    clock_gettime(clock, &used) < 0)
		return -ESRCH;
	*ret_ns = (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
	return 0;
}

/* What it has in memory: the second field of proc(5)'s statm. */
static int read_memory(int32_t pid, uint64_t *ret_bytes)
{
	unsigned long long pages;
	char path[32], text[128];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	r = small_file_read(AT_FDCWD, path, text, sizeof(text));
	if (r < 0)
		return r;
	if (sscanf(text, "%*u %llu", &pages) != 1)
		return -EINVAL;
	*ret_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

/* False: there is nothing to tell, for the first time or for ever. */
static bool measure(struct target *t, struct msg_measure *ret)
{
	struct measured now = {.time_ns = clock_mono_ns()};
	const struct measured before = t->measured;
	uint64_t memory_bytes;

	if (read_cpu(t->pid, &now.cpu_ns) < 0 ||
	    read_memory(t->pid, &memory_bytes) < 0 ||
	    /* Else it may have been another process of that number. */
	    !process_is_alive(t->pidfd))
		return false;
	t->measured = now;
	*ret = (struct msg_measure){
		.target = t->id,
		.time_ns = now.time_ns,
		.cpu_percent_millionths = measure_percent(&before, &now),
		.memory_bytes = memory_bytes,
	};
	return before.time_ns != 0;
}

static bool is_due(const struct target *t, const struct unwind *u,
		   uint64_t now_ns)
{
	return t->unwind == u && t->phase == TARGET_PROFILED &&
	       t->session == SESSION_OPEN &&
	       now_ns - t->measured.time_ns >= MEASURE_NS;
}

static void tell(struct broker *b, struct unwind *u, uint64_t now_ns)
{
	struct msg_measures m = {.h = MSG_HEADER(MSG_MEASURES, msg_measures)};

	/* The next time it goes on where there was no more room. */
	FOR_EACH_TARGET (t, b)
		if (m.n < MSG_MEASURES_MAX && is_due(t, u, now_ns) &&
		    measure(t, &m.v[m.n]))
			m.n++;
	if (m.n == 0)
		return;
	child_send(&u->child, &m, sizeof(m), NULL, 0);
	u->measures_asked = true;
}

void measure_check(struct broker *b)
{
	const uint64_t now_ns = clock_mono_ns();

	if (b->ended_ns != 0)
		return;
	for (size_t i = 0; i < b->n_unwinds; i++)
		if (!b->unwinds[i]->measures_asked &&
		    b->unwinds[i]->child.fd >= 0)
			tell(b, b->unwinds[i], now_ns);
}
