/*
 * Our walk beside those of other unwinders, on the same samples, in turn: what
 * disturbs one disturbs all.
 */
#ifndef TESTS_BENCH_BESIDE_H
#define TESTS_BENCH_BESIDE_H

#include <stddef.h>
#include <sys/types.h>

#include "tests/bench/others.h"
#include "tests/bench/recorded.h"

struct beside {
	size_t n;		     /* samples that could be compared: all registers are known */
	double ours_ns, ns[OTHER_N]; /* a stack, the least of the rounds */
	size_t same[OTHER_N];	     /* stacks that are frame by frame ours */
};

/*
 * Walks these samples of r, all caches warm; those that are compared come to
 * lie in front. Thread tid, one of the process's, stays stopped. What fails
 * ends the program.
 */
struct beside beside_measure(const struct recorded *r, pid_t tid, struct record_sample **samples,
			     size_t n);

#endif
