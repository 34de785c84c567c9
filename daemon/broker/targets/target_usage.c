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

#define USAGE_EVERY_NS (1 * NS_PER_SEC)

/* 100 % is 10^8; the time of a thousand processors fits easily. */
#define MILLIONTHS_PER_ONE UINT64_C(100000000)

uint64_t target_usage_micropercent(const struct target_usage *from, const struct target_usage *to)
{
	uint64_t time_ns = to->time_ns - from->time_ns;

	if (to->time_ns <= from->time_ns || to->cpu_ns <= from->cpu_ns)
		return 0;
	return (uint64_t)((double)(to->cpu_ns - from->cpu_ns) / (double)time_ns *
			  (double)MILLIONTHS_PER_ONE);
}

/*
 * The file stays open: opening and closing it each time would be three system calls instead of
 * one.
 */
static bool open_memory(struct run *run)
{
	if (run->statm_fd >= 0)
		return true;
	run->statm_fd = open(procfs_path(run->pid, "statm").text, O_RDONLY | O_CLOEXEC);
	/* If the process has ended, the file may belong to another process with the same pid. */
	if (run->statm_fd >= 0 && !process_is_alive(run->pidfd))
		close_fd(&run->statm_fd);
	return run->statm_fd >= 0;
}

/*
 * Reads the resident memory and how much of it is anonymous: the second field of statm
 * (proc(5)), and its difference to the third (files and shared memory). /proc/PID/status has the
 * same numbers at ten times the cost.
 */
static int read_memory(const struct run *run, uint64_t *ret_bytes, uint64_t *ret_anonymous_bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long pages, shared;
	char text[128];
	ssize_t n = pread(run->statm_fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	if (sscanf(text, "%*u %llu %llu", &pages, &shared) != 2)
		return -EINVAL;
	*ret_bytes = pages * page;
	/* The kernel reads the fields one after the other, so shared may exceed pages. */
	*ret_anonymous_bytes = pages > shared ? (pages - shared) * page : 0;
	return 0;
}

/*
 * Reads the usage of a target. Returns false at the first reading and on an error. statm can be
 * read only while the process has its pid. It is read last, so that the clock, which is read by
 * pid, was that of the process. A dead process has no memory and is not reported. A live process
 * has none if its leader has exited before its threads.
 */
static bool read_usage(struct run *run, struct msg_usage_entry *ret)
{
	struct target_usage now = {.time_ns = clock_mono_ns()};
	const struct target_usage before = run->usage;
	uint64_t memory_bytes = 0, anonymous_bytes = 0;

	if (!open_memory(run) || clock_process_ns(run->pid, &now.cpu_ns) < 0 ||
	    read_memory(run, &memory_bytes, &anonymous_bytes) < 0 ||
	    (memory_bytes == 0 && !process_is_alive(run->pidfd)))
		return false;
	run->usage = now;
	*ret = (struct msg_usage_entry){
		.target = run->id,
		.time_ns = now.time_ns,
		.cpu_percent_millionths = target_usage_micropercent(&before, &now),
		.memory_bytes = memory_bytes,
		.anonymous_bytes = anonymous_bytes,
	};
	return before.time_ns != 0;
}

static bool is_due(const struct run *run, const struct unwind *u, uint64_t now_ns)
{
	return run->unwind == u && run->phase == RUN_PROFILED && run->session == SESSION_OPEN &&
	       now_ns - run->usage.time_ns >= USAGE_EVERY_NS;
}

static void send_usage(struct targets *ts, struct unwind *u, uint64_t now_ns)
{
	struct msg_usage m = {.h = MSG_HEADER(MSG_USAGE)};

	/* Targets that do not fit are due the next time. */
	FOR_EACH_RUN (run, ts)
		if (m.n < MSG_USAGE_MAX && is_due(run, u, now_ns) && read_usage(run, &m.v[m.n]))
			m.n++;
	if (m.n == 0)
		return;
	child_send(&u->child, &m, sizeof(m), NULL, 0);
	u->usage_unanswered = true;
}

void target_usage_check(struct targets *ts)
{
	const uint64_t now_ns = clock_mono_ns();

	if (ts->state->phase >= PHASE_DELIVERING)
		return;
	for (size_t i = 0; i < ts->children->n_unwinds; i++)
		if (!ts->children->unwinds[i]->usage_unanswered &&
		    ts->children->unwinds[i]->child.fd >= 0)
			send_usage(ts, ts->children->unwinds[i], now_ns);
}
