#include "daemon/broker/targets/target_usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/targets/targets.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/process.h"
#include "lib/base/clock.h"
#include "lib/base/procfs.h"

#define MEASURE_NS (1 * NS_PER_SEC)

/* 100 % is 10^8; a thousand processors for a second fit by far. */
#define MILLIONTHS_PER_ONE UINT64_C(100000000)

uint64_t target_usage_percent(const struct target_usage *from, const struct target_usage *to)
{
	uint64_t time_ns = to->time_ns - from->time_ns;

	if (to->time_ns <= from->time_ns || to->cpu_ns <= from->cpu_ns)
		return 0;
	return (uint64_t)((double)(to->cpu_ns - from->cpu_ns) / (double)time_ns *
			  (double)MILLIONTHS_PER_ONE);
}

/* Once: opened and closed each time it takes three calls for one. */
static bool open_memory(struct target *t)
{
	if (t->statm_fd >= 0)
		return true;
	t->statm_fd = open(procfs_path(t->pid, "statm").text, O_RDONLY | O_CLOEXEC);
	/* Else it may be that of another process of that number. */
	if (t->statm_fd >= 0 && !process_is_alive(t->pidfd))
		close_fd(&t->statm_fd);
	return t->statm_fd >= 0;
}

/*
 * What it has in memory, and how much of that is in no file: of proc(5)'s statm
 * the second field, and what it has more than the third (files and shared
 * memory). status says the same and costs ten times as much.
 */
static int read_memory(const struct target *t, uint64_t *ret_bytes, uint64_t *ret_anonymous_bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long pages, shared;
	char text[128];
	ssize_t n = pread(t->statm_fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (sscanf(text, "%*u %llu %llu", &pages, &shared) != 2)
		return -EINVAL;
	*ret_bytes = pages * page;
	/* The kernel reads them one after the other. */
	*ret_anonymous_bytes = pages > shared ? (pages - shared) * page : 0;
	return 0;
}

/*
 * False: there is nothing to tell, for the first time or for ever. Its file can
 * be read as long as its number is its own, and is read last. Who is dead has
 * no memory, nor has a leader that has exited before its threads.
 */
static bool measure(struct target *t, struct msg_measure *ret)
{
	struct target_usage now = {.time_ns = clock_mono_ns()};
	const struct target_usage before = t->usage;
	uint64_t memory_bytes = 0, anonymous_bytes = 0;

	if (!open_memory(t) || clock_process_ns(t->pid, &now.cpu_ns) < 0 ||
	    read_memory(t, &memory_bytes, &anonymous_bytes) < 0 ||
	    (memory_bytes == 0 && !process_is_alive(t->pidfd)))
		return false;
	t->usage = now;
	*ret = (struct msg_measure){
		.target = t->id,
		.time_ns = now.time_ns,
		.cpu_percent_millionths = target_usage_percent(&before, &now),
		.memory_bytes = memory_bytes,
		.anonymous_bytes = anonymous_bytes,
	};
	return before.time_ns != 0;
}

static bool is_due(const struct target *t, const struct unwind *u, uint64_t now_ns)
{
	return t->unwind == u && t->phase == TARGET_PROFILED && t->session == SESSION_OPEN &&
	       now_ns - t->usage.time_ns >= MEASURE_NS;
}

static void tell(struct targets *ts, struct unwind *u, uint64_t now_ns)
{
	struct msg_measures m = {.h = MSG_HEADER(MSG_MEASURES)};

	/* The next time it goes on where there was no more room. */
	FOR_EACH_TARGET (t, ts)
		if (m.n < MSG_MEASURES_MAX && is_due(t, u, now_ns) && measure(t, &m.v[m.n]))
			m.n++;
	if (m.n == 0)
		return;
	child_send(&u->child, &m, sizeof(m), NULL, 0);
	u->measures_asked = true;
}

void target_usage_check(struct targets *ts)
{
	const uint64_t now_ns = clock_mono_ns();

	if (ts->state->phase >= PHASE_SAMPLED)
		return;
	for (size_t i = 0; i < ts->children->n_unwinds; i++)
		if (!ts->children->unwinds[i]->measures_asked &&
		    ts->children->unwinds[i]->child.fd >= 0)
			tell(ts, ts->children->unwinds[i], now_ns);
}
