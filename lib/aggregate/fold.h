/*
 * Merges equal frames of a profile into one, and then equal stacks into one.
 * Used for aggregate_options.by_function, where all frames of a function have
 * the same address.
 */
#ifndef LIB_AGGREGATE_FOLD_H
#define LIB_AGGREGATE_FOLD_H

#include <stdint.h>

#include "lib/base/util.h"
#include "proto/profile.h"

struct fold {
	struct profile_frame *frames;
	struct profile_node *nodes;
};

/* Frees everything that f points to and zeroes f. f may be zero. */
void fold_fini(struct fold *f);

/*
 * Replaces the frames and nodes of p by merged ones, and changes the nodes of
 * the samples. The new arrays belong to f. Frames that differ only in in_app are
 * equal; the merged frame is in_app if all of them are. Returns 0, or -ENOMEM: p
 * and the samples are unchanged.
 *
 * Strings are compared by pointer: equal strings of p's frames must be interned
 * (lib/base/text.h).
 */
must_check int fold_equal(struct fold *f, uint64_t hash_seed, struct profile_sample *samples,
			  struct profile *p);

#endif
