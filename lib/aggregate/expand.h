/*
 * Inlined functions as frames of their own. In the profile of a closed chunk, a
 * frame with inlined functions (lib/aggregate/lookup.h) becomes several frames
 * with the same address, in every stack that has it.
 */
#ifndef LIB_AGGREGATE_EXPAND_H
#define LIB_AGGREGATE_EXPAND_H

#include "lib/aggregate/lookup.h"
#include "lib/aggregate/stacks.h"
#include "lib/base/util.h"
#include "proto/profile.h"

/*
 * Limit of the payload's bytes for stacks and frames after the expansion. With
 * the size at which a chunk is due (20 MB) and its strings (LOOKUP_PAYLOAD_MAX)
 * the payload stays below the 50 MB that the server accepts. A chunk that would
 * pass the limit is not expanded.
 */
#define EXPAND_PAYLOAD_MAX (12u * 1000 * 1000)

struct expand {
	struct profile_frame *frames;
	struct profile_node *nodes;
};

/* Frees everything that e points to and zeroes e. e may be zero. */
void expand_fini(struct expand *e);

/*
 * Replaces the frames and nodes of p, which are those of l and s, by frames and
 * nodes with the inlined functions, and changes the nodes of the samples. The
 * new arrays belong to e. Without inlined functions nothing changes. Returns 0,
 * or -ENOMEM: p is unchanged.
 */
must_check int expand_inlined(struct expand *e, const struct lookup *l, const struct stacks *s,
			      struct profile_sample *samples, struct profile *p);

#endif
