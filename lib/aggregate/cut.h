/*
 * The cut between two chunks of a target: ends the open chunk at a time, and begins the next chunk
 * with the threads, the stacks and the later samples of the old one. lib/aggregate/aggregate.c uses
 * this module to close a chunk.
 *
 * Two consecutive chunks join without a hole. cut_end() sets aside the samples at or after the end,
 * which belong to the next chunk. Then it closes the old chunk with a copy of each thread's last
 * stack, as a sample at the end. cut_next() begins the next chunk with samples of these stacks at
 * the same time or, if the end is the beginning of a gap (window.h), at the end of the gap.
 *
 * Order of calls: cut_end(); the caller reads the samples and stacks of the ended chunk;
 * cut_next(). If the aggregate is freed before cut_next(), call cut_fini() instead. Initialise a
 * struct cut to zeros once; cut_next() and cut_fini() free its memory and zero it again.
 */
#ifndef LIB_AGGREGATE_CUT_H
#define LIB_AGGREGATE_CUT_H

#include "lib/aggregate/open_chunk.h"

struct cut {
	/* Set by cut_end(). The times are CLOCK_MONOTONIC, and differ only at a gap. */
	uint64_t end_ns;	      /* end of the old chunk */
	uint64_t next_ns;	      /* beginning of the next chunk */
	struct profile_sample *ahead; /* samples that belong to the next chunk */
	size_t n_ahead;
};

/*
 * Ends the chunk at end_ns, or at another time that window_end() (window.h) chooses. Sorts
 * c->samples by time, then by tid. Returns 0, or -ENOMEM: the chunk is lost. In both cases the
 * caller calls cut_next().
 */
must_check int cut_end(struct cut *cut, struct open_chunk *c, uint64_t end_ns);

/*
 * Begins the next chunk in c. Removes the threads that have exited and have no samples in the next
 * chunk, and the stacks that the next chunk does not need. Returns 0, or -ENOMEM: the next chunk is
 * open and empty, and no thread has a stack until its next sample.
 */
must_check int cut_next(struct cut *cut, struct open_chunk *c);

/* Frees everything that cut points to, and zeroes cut. */
void cut_fini(struct cut *cut);

#endif
