/*
 * The stacks of one chunk, as a trie. A node is a frame together with its parent, the node of the
 * frame's caller. So a node stands for a whole stack: its frame is the innermost one, and its
 * parents are the callers. Each stack also has the sums of the time that threads spent in it, by
 * state.
 *
 * The open chunk adds the stack of every sample here. When the chunk is closed, the nodes
 * become those of the profile (struct profile_node), unchanged. Names are looked up by
 * lib/aggregate/lookup.h, by the index of the frame.
 *
 * Frames and nodes are only added, so an index stays valid. A parent has a lower
 * index than its children. Functions that allocate return 0 or -ENOMEM.
 */
#ifndef LIB_AGGREGATE_STACKS_H
#define LIB_AGGREGATE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

/*
 * A frame. No two frames have the same addr and is_leaf. A leaf and a caller with the same address
 * are two frames, because their names are looked up at different addresses: that of a leaf at addr,
 * that of a caller at addr - 1, inside the call instruction.
 */
struct stacks_frame {
	uint64_t addr;
	bool is_leaf;	/* unwind_frame.is_leaf: the name is that at addr, not at addr - 1 */
	bool near_root; /* in some stack the frame is the root, or next to the root */
};

/* A node that was a thread's whole stack in a sample, and the time that threads spent there. */
struct stacks_time {
	uint32_t node;
	uint64_t ns[PROFILE_STATES]; /* ns by enum profile_state */
};

struct stacks {
	struct stacks_frame *frames;
	size_t n_frames, cap_frames;
	struct table leaves, callers; /* address to index in frames */

	struct profile_node *nodes;
	uint32_t *time_of; /* by node: index in times; PROFILE_NONE: never a whole stack */
	size_t n_nodes, cap_nodes, cap_time_of;
	struct table children; /* parent << 32 | frame to index in nodes */

	struct stacks_time *times;
	size_t n_times, cap_times;

	/* Upper bound of the bytes for frames (without strings) and stacks in the chunk's JSON. */
	size_t payload_bytes;
};

/* Initialises an empty trie. Does not allocate. */
void stacks_init(struct stacks *s, uint64_t hash_seed);
/* Frees the memory; s is as after stacks_init(). s may be NULL. */
void stacks_fini(struct stacks *s);

/*
 * Adds a stack: the n frames, leaf first, then those of base, a stack that the trie has already.
 * base is the node of the caller of frames[n - 1]; PROFILE_NONE: frames[n - 1] is the root.
 * The whole stack has at most UNWIND_FRAMES_MAX frames. A frame at address 0 (a call through a null
 * pointer) is left out, because the formats have no such frame. *ret_node is the stack's node, or
 * PROFILE_NONE if the stack has no frame. On -ENOMEM the nodes that were added so far stay, unused.
 */
must_check int stacks_add(struct stacks *s, uint32_t base, const struct unwind_frame *frames,
			  size_t n, uint32_t *ret_node);

/* Returns the node of the n-th caller of node, which must have as many; node itself if n is 0. */
uint32_t stacks_caller(const struct stacks *s, uint32_t node, size_t n);

/*
 * Adds a copy of a stack of another trie: from is that trie, node the stack's node in it. The times
 * are not copied. *ret_node is the node in s; PROFILE_NONE if node is PROFILE_NONE.
 */
must_check int stacks_copy(struct stacks *s, const struct stacks *from, uint32_t node,
			   uint32_t *ret_node);

/*
 * Adds ns to the time of a stack in a state. node is one that stacks_add() or stacks_copy()
 * returned, not PROFILE_NONE.
 */
void stacks_charge(struct stacks *s, uint32_t node, uint64_t ns, enum profile_state state);

#endif
