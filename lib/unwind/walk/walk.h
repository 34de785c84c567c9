/*
 * The loop of a walk: from the innermost frame of a copied stack to the root, step by step.
 * unwind_walk_sample() (unwind.h) calls it for each sample.
 */
#ifndef LIB_UNWIND_WALK_WALK_H
#define LIB_UNWIND_WALK_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/unwind.h"
#include "lib/unwind/walk/walk_state.h"

/*
 * Walks from f, the innermost frame, to the root, to a frame whose caller cannot be found, or until
 * *ret has max_frames frames. Before each walk the caller initialises
 * - *w: space, stack, capped, second_capped and all_saved, and 0 in all other members;
 * - *f: the sample's registers, its pc as addr, is_leaf true, and 0 in all other members.
 * The walk changes both. It sets all members of *ret except guess_cost, to which it adds
 * w->guess_cost: if a sample is walked several times, guess_cost is the sum. The caller sets
 * ret->guess_cost to 0 before the first walk. The walk reuses the last walk of thread tid (memo.h),
 * unless w->all_saved is set.
 */
void walk_to_end(struct walk *w, struct walk_frame *f, uint32_t tid, size_t max_frames,
		 struct unwind_stack *ret);

#endif
