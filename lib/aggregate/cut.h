/*
 * The cut between two chunks of a target: ends the samples of the open chunk at
 * a time, and begins the next chunk with what is needed of the old one.
 *
 * Two consecutive chunks join without a hole: the old chunk ends with a copy of
 * each thread's stack at the first timestamp of the next chunk, and the next
 * chunk begins with the same stacks. Samples that are later than the end move
 * to the next chunk.
 *
 * A cut is used in this order: cut_end(); the caller reads the chunk's samples
 * and stacks; cut_next(). A struct cut is zero before its first use and after
 * cut_next() or cut_fini().
 */
#ifndef LIB_AGGREGATE_CUT_H
#define LIB_AGGREGATE_CUT_H

#include "lib/aggregate/open_chunk.h"

struct cut {
	uint64_t end_ns;	      /* end of the old chunk */
	uint64_t next_ns;	      /* beginning of the next chunk */
	struct profile_sample *ahead; /* samples that belong to the next chunk */
	size_t n_ahead;
};

/*
 * Ends the chunk at end_ns, or at the time that period_end() chooses instead
 * (cut->end_ns). Its samples are sorted by time, then tid. Returns 0, or -ENOMEM:
 * the chunk is lost, and cut_next() is called all the same.
 */
must_check int cut_end(struct cut *cut, struct open_chunk *c, uint64_t end_ns);

/*
 * Begins the next chunk. Threads that have exited and old stacks are freed.
 * Returns 0, or -ENOMEM: the next chunk is open, but has no thread's stack until
 * the thread's next sample.
 */
must_check int cut_next(struct cut *cut, struct open_chunk *c);

/* Frees everything that cut points to. */
void cut_fini(struct cut *cut);

#endif
