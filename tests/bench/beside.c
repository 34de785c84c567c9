#include "tests/bench/beside.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/clock.h"

#define ROUNDS	   30
#define FRAMES_MAX 512

/* The number of sentry-profd's unwinder, beside enum other. */
#define OURS OTHER_N

static struct unwind_stack stack;
static uint64_t addrs[FRAMES_MAX];
static volatile size_t sink;

static void walk(const struct recorded *r, const struct record_sample *sample)
{
	if (unwind_walk(r->space, sample, sample->h.ring.size, FRAMES_MAX, &stack) < 0) {
		(void)fprintf(stderr, "unwind_walk fails\n");
		exit(EXIT_FAILURE);
	}
}

static bool is_ours(size_t n)
{
	for (size_t i = 0; i < n && i < stack.n; i++)
		if (addrs[i] != stack.frames[i].addr)
			return false;
	return n == stack.n;
}

static size_t keep_whole(struct record_sample **samples, size_t n)
{
	const uint64_t all = (UINT64_C(2) << SAMPLE_X86_64_RIP) - 1;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct record_sample *sample = samples[i];

		if (sample->regs_known != all)
			continue;
		samples[i] = samples[kept];
		samples[kept++] = sample;
	}
	return kept;
}

static double walk_all(const struct recorded *r, struct record_sample **samples, size_t n,
		       unsigned int by)
{
	const uint64_t start = clock_mono_ns();

	for (size_t i = 0; i < n; i++) {
		if (by == OURS)
			walk(r, samples[i]);
		else
			sink += others_walk((enum other)by, samples[i], addrs, FRAMES_MAX);
	}
	return (double)(clock_mono_ns() - start) / (double)n;
}

struct beside beside_measure(const struct recorded *r, pid_t tid, struct record_sample **samples,
			     size_t n)
{
	struct beside b = {.n = keep_whole(samples, n)};
	double least[OTHER_N + 1];

	others_open(r->pid, tid);
	for (size_t i = 0; i < b.n; i++) {
		walk(r, samples[i]);
		for (unsigned int by = 0; by < OTHER_N; by++)
			b.same[by] +=
				is_ours(others_walk((enum other)by, samples[i], addrs, FRAMES_MAX));
	}
	for (size_t round = 0; round < ROUNDS && b.n > 0; round++) {
		for (unsigned int by = 0; by <= OTHER_N; by++) {
			double ns;

			/* Replaces what the unwinder before has left in the caches. */
			(void)walk_all(r, samples, b.n, by);
			ns = walk_all(r, samples, b.n, by);
			if (round == 0 || ns < least[by])
				least[by] = ns;
		}
	}
	for (unsigned int by = 0; by < OTHER_N && b.n > 0; by++)
		b.ns[by] = least[by];
	if (b.n > 0)
		b.ours_ns = least[OURS];
	return b;
}
