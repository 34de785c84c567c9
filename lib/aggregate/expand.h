/*
 * Makes inlined functions frames of their own: in the profile of a closed chunk, a frame
 * at whose address functions were inlined (lib/aggregate/lookup.h) becomes several
 * frames with the same address, in every stack that contains it.
 */
#ifndef LIB_AGGREGATE_EXPAND_H
#define LIB_AGGREGATE_EXPAND_H

#include "lib/aggregate/lookup.h"
#include "lib/aggregate/stacks.h"
#include "lib/base/util.h"
#include "proto/profile.h"

/*
 * Limit of the payload's bytes for stacks and frames after the expansion; a chunk that
 * would need more is not expanded. A chunk is due at 20 MB, and its strings take up to
 * LOOKUP_PAYLOAD_MAX: with this limit the payload stays below the 50 MB that the server
 * accepts.
 */
#define EXPAND_PAYLOAD_MAX (12u * 1000 * 1000)

/* The frames and nodes of the expanded profile. NULL before expand_inlined(). */
struct expand {
	struct profile_frame *frames;
	struct profile_node *nodes;
};

/* Frees everything that e points to and zeroes e. Safe on a zero-initialised struct. */
void expand_fini(struct expand *e);

/*
 * Expands the profile p of a closed chunk. Called after lookup_finish() and before
 * dedup_profile(), when the frames of p are those of l, and its nodes are those of s. Replaces
 * both by arrays that belong to e, and sets the nodes of samples, which are the samples of
 * p, to the new ones; p has no lines then. Changes nothing if no function was inlined, or if the
 * payload would exceed EXPAND_PAYLOAD_MAX. e is zero before. Returns 0, or -ENOMEM: p and samples
 * are unchanged.
 */
must_check int expand_inlined(struct expand *e, const struct lookup *l, const struct stacks *s,
			      struct profile_sample *samples, struct profile *p);

#endif
