/*
 * The stacks of one chunk, as a trie: each node is a frame and the node of its
 * caller. A frame is an address and exists once. Each stack also sums up the
 * time that threads spent in it, running and waiting.
 *
 * The open chunk adds every sample's stack here; when the chunk is closed, the
 * nodes go into the profile as they are (struct profile_node). Names are looked
 * up elsewhere (lib/aggregate/lookup.h), by the frame's index.
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
 * A leaf and a caller with the same address are two frames, because they are
 * looked up differently: a leaf at its address, a caller one byte before, inside
 * the call instruction.
 */
struct stacks_frame {
	uint64_t addr;
	bool is_leaf;
	bool near_root; /* the root of some stack, or next to it */
};

/* A node that is a thread's whole stack, and the time that threads spent there. */
struct stacks_time {
	uint32_t node;
	uint64_t running_ns;
	uint64_t waiting_ns;
};

struct stacks {
	struct stacks_frame *frames;
	size_t n_frames, cap_frames;
	struct table leaves, callers; /* address to frame */

	struct profile_node *nodes;
	uint32_t *time_of; /* by node: index in times; PROFILE_NONE: not a whole stack */
	size_t n_nodes, cap_nodes, cap_time_of;
	struct table children; /* parent << 32 | frame to node */

	struct stacks_time *times;
	size_t n_times, cap_times;

	/* Upper bound of the payload's bytes for frames (without strings) and stacks. */
	size_t payload_bytes;
};

/* Initialises an empty trie. Does not allocate. */
void stacks_init(struct stacks *s, uint64_t hash_seed);
/* Frees everything and empties the trie. s may be NULL. */
void stacks_fini(struct stacks *s);

/*
 * Adds a stack: n frames, leaf first, which the frames of the node base called
 * (PROFILE_NONE: no further callers). A stack has at most UNWIND_FRAMES_MAX
 * frames. A frame at address 0 (a call through a null pointer) is left out,
 * because the formats have no such frame. *ret_node is the stack's node, or
 * PROFILE_NONE if no frame is left. On -ENOMEM the nodes that were added so far
 * stay, unused.
 */
must_check int stacks_add(struct stacks *s, uint32_t base, const struct unwind_frame *frames,
			  size_t n, uint32_t *ret_node);

/* Returns the node that is n callers above node. node must have that many. */
uint32_t stacks_caller(const struct stacks *s, uint32_t node, size_t n);

/* Adds a stack of another trie. node may be PROFILE_NONE. */
must_check int stacks_copy(struct stacks *s, const struct stacks *from, uint32_t node,
			   uint32_t *ret_node);

/* Adds ns to the time of a stack, a node that stacks_add() or stacks_copy() returned. */
void stacks_charge(struct stacks *s, uint32_t node, uint64_t ns, bool running);

#endif
