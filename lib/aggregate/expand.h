/*
 * Inlined functions as frames of their own: a frame with what was inlined
 * there becomes several, all of its address, in every stack that it is in.
 */
#ifndef LIB_AGGREGATE_EXPAND_H
#define LIB_AGGREGATE_EXPAND_H

#include "lib/aggregate/lookup.h"
#include "lib/aggregate/stacks.h"
#include "lib/base/util.h"
#include "proto/profile.h"

/*
 * What stacks and frames may take in the payload then. With the cut of a chunk
 * (20 MB) and its strings (LOOKUP_PAYLOAD_MAX) it stays below the server's 50
 * MB. A chunk that would have more is left as it is.
 */
#define EXPAND_PAYLOAD_MAX (12u * 1000 * 1000)

struct expand {
	struct profile_frame *frames;
	struct profile_node *nodes;
};

/* Takes NULL's equal: all zero. */
void expand_fini(struct expand *e);

/*
 * Puts frames and nodes with inlined functions in the place of p's, which are
 * those of l and s, and turns the samples' nodes to them. They belong to e.
 * Without any inlined function nothing changes. 0 or -ENOMEM: p is as before.
 */
must_check int expand_inlined(struct expand *e, const struct lookup *l, const struct stacks *s,
			      struct profile_sample *samples, struct profile *p);

#endif
