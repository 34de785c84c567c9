/*
 * Compares the unwinder of sentry-profd with others on the same samples. The unwinders take turns,
 * so that other work on the machine disturbs all of them.
 */
#ifndef TESTS_BENCH_BESIDE_H
#define TESTS_BENCH_BESIDE_H

#include <stddef.h>
#include <sys/types.h>

#include "tests/bench/others.h"
#include "tests/bench/recorded.h"

struct beside {
	size_t n;		     /* samples that were compared: those with all registers */
	double ours_ns, ns[OTHER_N]; /* per stack, the shortest of the rounds */
	size_t same[OTHER_N];	     /* stacks with the same frames as by sentry-profd */
};

/*
 * Compares the unwinders on these n samples of r, with warm caches. The first b.n elements of
 * samples are afterwards those that were compared, where b is the result. Stops thread tid of the
 * process until the caller exits, for libunwind-ptrace. Exits on an error.
 */
struct beside beside_measure(const struct recorded *r, pid_t tid, struct record_sample **samples,
			     size_t n);

#endif
