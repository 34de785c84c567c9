/*
 * Makes inlined functions frames of their own, in the profile of a closed chunk. For example, the
 * compiler has inlined g() into f(), which main() calls (lib/aggregate/lookup.h finds that out):
 *	before: main, f			after: main, f, g
 * The frames of f and g have the same address. aggregate.c uses this module with
 * aggregate_options.inlined.
 */
#ifndef LIB_AGGREGATE_EXPAND_H
#define LIB_AGGREGATE_EXPAND_H

#include "lib/aggregate/lookup.h"
#include "lib/aggregate/stacks.h"
#include "lib/base/util.h"
#include "proto/profile.h"

/*
 * The most bytes of the payload (the chunk's JSON) for stacks and frames after the expansion. A
 * chunk that would need more is not expanded. A chunk is due at 20 MB, and its strings take up to
 * LOOKUP_PAYLOAD_MAX. With this limit the payload stays below 50 MB, which Sentry's server accepts.
 */
#define EXPAND_PAYLOAD_MAX (12u * 1000 * 1000)

/* The frames and nodes (struct profile_node) of the expanded profile. NULL at first. */
struct expand {
	struct profile_frame *frames;
	struct profile_node *nodes;
};

/* Frees everything that e points to and zeroes e. Safe on a zero-initialised struct. */
void expand_fini(struct expand *e);

/*
 * Expands the profile p of a closed chunk, whose frames are those of l and whose nodes are those of
 * s. Call it after lookup_finish() and before dedup_profile(). Replaces the frames and nodes by
 * arrays that belong to e and are valid until expand_fini(). e must be zero before. samples is
 * p->samples without const: the function sets the new nodes there. p->lines becomes NULL.
 *
 * Returns 0, or -ENOMEM: p and samples are unchanged. They are also unchanged, with 0, if no
 * function was inlined or if the payload would exceed EXPAND_PAYLOAD_MAX.
 */
must_check int expand_inlined(struct expand *e, const struct lookup *l, const struct stacks *s,
			      struct profile_sample *samples, struct profile *p);

#endif
