/*
 * Reuses the last walk of a thread (space/memos.h) in the next one: most of a stack
 * stays the same, or comes back after a call.
 *
 * A step by a simple rule depends on the address, the stack pointer, the frame pointer
 * and one or two words on the stack. If a frame has the same three as a frame of the
 * last walk, and the words are the same, its caller is the same. Each word is compared
 * in each walk; nothing is assumed to be unchanged.
 *
 * A memo keeps the part of a stack that leads to the root by simple steps. A walk that
 * ends in another way empties the memo.
 */
#ifndef LIB_UNWIND_WALK_MEMO_H
#define LIB_UNWIND_WALK_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/space/memos.h"
#include "lib/unwind/unwind.h"
#include "lib/unwind/walk/walk_state.h"

/* A walk in progress: the frames so far that a memo could keep, innermost first. */
struct memo_walk {
	struct memo *memo; /* NULL: none */
	uint32_t next;	   /* memo->frames[next] may be the next frame */
	uint32_t kept;	   /* outermost frames of memo->frames that are still valid */
	uint32_t n;
	bool too_long;
	uint32_t n_images;
	struct image *images[MEMO_IMAGES_MAX + 1];
	struct memo_frame frames[MEMO_FRAMES_MAX];
};

/* Begins a walk of a thread. m may be NULL: no memo is used. */
void memo_begin(struct memo_walk *mw, struct memos *m, uint32_t tid);

/*
 * Called when the walk has reached f, which is in out already, by the step w->step. Adds
 * the callers that the memo proves to out, and moves f to the last of them. Returns true
 * if that is the root: out is complete, with out->shared_n and out->shared_id. Otherwise the walk
 * goes on with step_to_caller().
 */
bool memo_follow(struct memo_walk *mw, struct walk *w, struct walk_frame *f, size_t max_frames,
		 struct unwind_stack *out);

/* Ends the walk: sets out->id, and updates the memo. */
void memo_end(struct memo_walk *mw, const struct walk *w, struct unwind_stack *out);

#endif
