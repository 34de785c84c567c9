/*
 * The stacks of one chunk: a trie whose nodes are a frame and its caller's
 * node, with frames interned by address. It knows addresses and times, no
 * names and no threads.
 *
 * Frames and nodes are only added; their indices stay. Parents stand before
 * their children (struct profile_node).
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
 * A leaf and a caller with the same address are two frames: the one is looked
 * up as it is, the other one byte before.
 */
struct stacks_frame {
	uint64_t addr;
	bool is_leaf;
	bool near_root; /* in some stack it is the root or next to it */
};

/* A node that is a thread's whole stack, and how long threads were there. */
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
	uint32_t *time_of; /* by node: index in times, or PROFILE_NONE */
	size_t n_nodes, cap_nodes, cap_time_of;
	struct table children; /* parent << 32 | frame to node */

	struct stacks_time *times;
	size_t n_times, cap_times;

	/*
	 * An upper bound of what frames (without their strings) and stacks take
	 * in a payload.
	 */
	size_t payload_bytes;
};

/* Empty. Allocates nothing. */
void stacks_init(struct stacks *s, uint64_t hash_seed);
/* Frees everything; s is as after stacks_init. Takes NULL. */
void stacks_fini(struct stacks *s);

/*
 * Adds a stack, leaf first, at most UNWIND_FRAMES_MAX frames: those n, called
 * by those of base, a node, or PROFILE_NONE. A frame at address 0 (a call
 * through a null pointer) is left out, since the formats know no such frame.
 * *ret_node is PROFILE_NONE if nothing is left. Returns 0 or -ENOMEM; what was
 * added until then stays, unused.
 */
must_check int stacks_add(struct stacks *s, uint32_t base, const struct unwind_frame *frames,
			  size_t n, uint32_t *ret_node);

/* The node that is n callers away from node, which has that many. */
uint32_t stacks_caller(const struct stacks *s, uint32_t node, size_t n);

/* The same for a stack of another trie; node may be PROFILE_NONE. */
must_check int stacks_copy(struct stacks *s, const struct stacks *from, uint32_t node,
			   uint32_t *ret_node);

/* Adds a thread's time in a stack that stacks_add or stacks_copy returned. */
void stacks_charge(struct stacks *s, uint32_t node, uint64_t ns, bool running);

#endif
