/*
 * The time for which a thread has bars, as a list of spans. merge_add() uses it to count time that
 * is in several chunks once, as in the chunk that is added first.
 *
 * Use: for each chunk covered_find_gap() and covered_add() for the thread's bars in the order of
 * time, then covered_settle(). Zero-initialise the struct.
 *
 * Memory: 16 bytes for each time without a gap. The chunks of one run follow each other, so a
 * thread that has a stack in all samples has one span.
 */
#ifndef PROTO_EXPORT_COVERED_H
#define PROTO_EXPORT_COVERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

struct covered_span {
	uint64_t start_ns, end_ns;
};

struct covered {
	/* n_settled spans, sorted and with gaps between them; then those of the current chunk. */
	struct covered_span *spans;
	size_t n, cap, n_settled;
};

void covered_fini(struct covered *c);

/*
 * Finds the first part of the time from *start_ns to end_ns that is not covered. Returns true and
 * sets *start_ns and *ret_end_ns to the part, or returns false if there is none. If *start_ns is
 * end_ns, the part is that moment. The caller passes the part to covered_add(). If *ret_end_ns is
 * before end_ns, it then looks for the next part, from *ret_end_ns on.
 */
bool covered_find_gap(const struct covered *c, uint64_t *start_ns, uint64_t end_ns,
		      uint64_t *ret_end_ns);

/* Adds a part that covered_find_gap() has found. Returns 0 or -ENOMEM. */
must_check int covered_add(struct covered *c, uint64_t start_ns, uint64_t end_ns);

/*
 * Ends a chunk: the next one may begin at any time. Takes time in proportion to n if the chunk is
 * not later than all before. Returns 0 or -ENOMEM.
 */
must_check int covered_settle(struct covered *c);

#endif
