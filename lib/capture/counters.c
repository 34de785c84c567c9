#include "lib/capture/counters.h"

#include <stddef.h>

/*
 * Returns the bucket of a duration: its octave above the base, and the three bits below the highest
 * bit.
 */
static size_t bucket_of(uint64_t ns)
{
	unsigned int octave;
	size_t bucket;

	if (ns >> PAUSE_BASE_SHIFT == 0)
		return 0;
	octave = 63u - (unsigned int)__builtin_clzll(ns);
	bucket = (octave - PAUSE_BASE_SHIFT) * 8 + ((ns >> (octave - 3)) & 7);
	return bucket < PAUSE_BUCKETS ? bucket : PAUSE_BUCKETS - 1;
}

static uint64_t bucket_end(size_t bucket)
{
	unsigned int octave = (unsigned int)(bucket / 8) + PAUSE_BASE_SHIFT;

	return ((uint64_t)8 + bucket % 8 + 1) << (octave - 3);
}

void counters_pause(struct capture_counters *c, uint64_t ns)
{
	c->pauses[bucket_of(ns)]++;
	if (ns > c->pause_max_ns)
		c->pause_max_ns = ns;
}

uint64_t counters_pause_percentile(const struct capture_counters *c, double share)
{
	uint64_t all = 0, seen = 0;

	for (size_t i = 0; i < PAUSE_BUCKETS; i++)
		all += c->pauses[i];
	for (size_t i = 0; i < PAUSE_BUCKETS; i++) {
		seen += c->pauses[i];
		if (seen > 0 && (double)seen >= share * (double)all) {
			uint64_t end = bucket_end(i);

			return end < c->pause_max_ns ? end : c->pause_max_ns;
		}
	}
	return 0;
}

void counters_add(struct capture_counters *sum, const struct capture_counters *more)
{
	sum->ticks += more->ticks;
	sum->expected += more->expected;
	sum->captured += more->captured;
	sum->repeated += more->repeated;
	sum->filled += more->filled;
	sum->stack_bytes += more->stack_bytes;
	for (size_t i = 0; i < MISSED_N; i++)
		sum->missed[i] += more->missed[i];
	sum->stops += more->stops;
	sum->event_stops += more->event_stops;
	sum->rewritten += more->rewritten;
	sum->unrepaired += more->unrepaired;
	sum->continued += more->continued;
	sum->cost_ns += more->cost_ns;
	sum->running_ns += more->running_ns;
	sum->ready_ns += more->ready_ns;
	sum->compared_cpu_ns += more->compared_cpu_ns;
	sum->compared_running_ns += more->compared_running_ns;
	sum->without_schedstat += more->without_schedstat;
	if (more->pause_max_ns > sum->pause_max_ns)
		sum->pause_max_ns = more->pause_max_ns;
	for (size_t i = 0; i < PAUSE_BUCKETS; i++)
		sum->pauses[i] += more->pauses[i];
}

const char *missed_reason_name(enum missed_reason reason)
{
	static const char *const names[MISSED_N] = {
		[MISSED_RING_FULL] = "ring_full",
		[MISSED_LATE] = "sampler_late",
		[MISSED_EXITED] = "thread_exited",
		[MISSED_NOT_STOPPED] = "not_stopped",
		[MISSED_NOT_ATTACHED] = "not_attached",
		[MISSED_MEMORY_SLOW] = "memory_slow",
		[MISSED_NO_READER] = "no_unwind",
		[MISSED_NO_RESOURCES] = "no_resources",
		[MISSED_CRASH] = "crash",
		[MISSED_BUDGET] = "budget",
		[MISSED_NO_STACK] = "no_stack",
		[MISSED_TWICE] = "twice",
		[MISSED_LOST] = "lost",
		[MISSED_THROTTLED] = "throttled",
		[MISSED_EXEC] = "exec",
	};

	return reason < MISSED_N ? names[reason] : "unknown";
}
