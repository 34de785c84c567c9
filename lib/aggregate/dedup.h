/*
 * Merges equal frames of a profile into one, and then equal stacks into one. aggregate.c calls this
 * module if aggregate_options.by_function is set: lookup_update() has then given all frames of a
 * function the same address, so that many frames are equal.
 */
#ifndef LIB_AGGREGATE_DEDUP_H
#define LIB_AGGREGATE_DEDUP_H

#include <stdint.h>

#include "lib/base/util.h"
#include "proto/profile.h"

/* The merged frames and nodes (struct profile_node, of which stacks consist). NULL at first. */
struct dedup {
	struct profile_frame *frames;
	struct profile_node *nodes;
};

/* Frees everything that f points to and zeroes f. Safe on a zero-initialised struct. */
void dedup_fini(struct dedup *f);

/*
 * Replaces the frames and nodes of p by merged ones, which belong to f and are valid until
 * dedup_fini(). f must be zero before. samples is p->samples without const: the function sets the
 * merged nodes there. hash_seed: random. Returns 0, or -ENOMEM: p and samples are unchanged.
 *
 * Frames that differ only in in_app are equal; the merged frame is in_app if all of them are.
 * Strings are compared by pointer, so the strings of p's frames must be interned
 * (lib/base/string_pool.h). p->lines becomes NULL: frames that become one were sampled at addresses
 * with different lines.
 */
must_check int dedup_profile(struct dedup *f, uint64_t hash_seed, struct profile_sample *samples,
			     struct profile *p);

#endif
