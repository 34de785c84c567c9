/*
 * Frames that are equal in a profile become one, and so do stacks of equal
 * frames: with addresses by function (aggregate_options.by_function) all
 * addresses of a function are one frame.
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

/* Safe on a zeroed struct, which it is afterwards. */
void fold_fini(struct fold *f);

/*
 * Puts fewer frames and nodes in the place of p's and turns the samples' nodes
 * to them. They belong to f. Equal texts in p's frames are the same pointer
 * (lib/base/text.h). Frames that differ in nothing but in_app are equal;
 * the one frame is in_app if all of them are. Returns 0, or -ENOMEM: p and the
 * samples are as before.
 */
must_check int fold_equal(struct fold *f, uint64_t hash_seed, struct profile_sample *samples,
			  struct profile *p);

#endif
