/*
 * Reuses the last walk of a thread (space/memos.h) in the next one: most of a stack
 * stays the same, or comes back after a call. walk_to_end() calls memo_begin(), then
 * memo_follow() at each frame, and memo_end().
 *
 * A step by a simple rule depends on the address, the stack pointer, the frame pointer
 * and one or two words on the stack. If a frame has the same three as a frame of the
 * last walk, and the words are the same, its caller is the same. Each word is compared
 * in each walk; nothing is assumed to be unchanged.
 *
 * A memo keeps the part of a stack that leads to the root by simple steps
 * (walk_step.is_simple). A walk that ends in another way empties the memo.
 */
#ifndef LIB_UNWIND_WALK_MEMO_H
#define LIB_UNWIND_WALK_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/space/memos.h"
#include "lib/unwind/unwind.h"
#include "lib/unwind/walk/walk_state.h"

/* A walk in progress, and what its memo will be. */
struct memo_walk {
	struct memo *memo; /* of the last walk; NULL: none */
	uint32_t next;	   /* memo->frames[next] may be the next frame */
	uint32_t kept;	   /* outermost frames of memo->frames that this walk has, too */
	uint32_t n;	   /* of frames */
	bool too_long;	   /* the walk has more frames than a memo can keep */
	uint32_t n_images; /* MEMO_IMAGES_MAX + 1: too many */
	struct image *images[MEMO_IMAGES_MAX + 1];
	struct memo_frame frames[MEMO_FRAMES_MAX]; /* innermost first, without those in kept */
};

/* Begins a walk of a thread. m may be NULL: then no memo is used. */
void memo_begin(struct memo_walk *mw, struct memos *m, uint32_t tid);

/*
 * Call it when the walk has reached f by the step w->step, and has added f to out. Adds to out
 * those callers of f that the memo has and the stack confirms, up to max_frames frames. Returns
 * true if the last of them is the root: out->frames is complete, and out->shared_n and
 * out->shared_id are set. Otherwise moves f to the last of them, and the walk goes on with
 * step_to_caller().
 */
bool memo_follow(struct memo_walk *mw, struct walk *w, struct walk_frame *f, size_t max_frames,
		 struct unwind_stack *out);

/* Ends the walk: sets out->id, and updates the memo. out->end must be set. */
void memo_end(struct memo_walk *mw, const struct walk *w, struct unwind_stack *out);

#endif
