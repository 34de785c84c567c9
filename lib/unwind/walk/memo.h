/*
 * Reuses the last walk of a thread (space/memos.h) in the next one: most of a stack
 * stays the same, or comes back after a call. walk_to_end() calls memo_begin(), then
 * memo_follow() at each frame, and memo_end().
 *
 * A step by a simple rule depends on the frame's address, stack pointer and frame pointer, and
 * on one or two words on the stack. If these three and the words are the same as in a frame of
 * the last walk, the caller is the same, too. Each walk compares each word; none is assumed to
 * be unchanged.
 *
 * A memo keeps the outer part of a stack: the frames from which simple steps (walk_step.is_simple)
 * lead to the root. memo_end() empties the memo if the walk has not reached the root, if its last
 * step is not simple, or if the walk exceeds a limit of memos.h.
 */
#ifndef LIB_UNWIND_WALK_MEMO_H
#define LIB_UNWIND_WALK_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/space/memos.h"
#include "lib/unwind/unwind.h"
#include "lib/unwind/walk/walk_state.h"

/* A walk in progress, and the memo that memo_end() makes of it. */
struct memo_walk {
	struct memo *memo; /* of the thread's last walk; NULL: none */
	uint32_t next;	   /* memo_follow() compares the next frame with memo->frames[next] */
	uint32_t kept;	   /* number of outermost frames of memo that stay in it */
	uint32_t n;	   /* number of frames[] in use */
	bool too_long;	   /* the walk has more frames than a memo can keep */
	uint32_t n_images; /* MEMO_IMAGES_MAX + 1: too many */
	struct image *images[MEMO_IMAGES_MAX + 1];
	struct memo_frame frames[MEMO_FRAMES_MAX]; /* innermost first, without the kept ones */
};

/* Begins a walk of a thread. m may be NULL: then no memo is used. */
void memo_begin(struct memo_walk *mw, struct memos *m, uint32_t tid);

/*
 * Call it when the walk has reached f by the step w->step (all zeros for the leaf), and has added f
 * to out. Adds to out those callers of f that the memo has and the stack confirms, until out has
 * max_frames frames.
 * Returns
 * - true if the last frame added, or f itself, is the root: out->frames is complete, and
 *   out->shared_n and out->shared_id are set;
 * - false otherwise. f is then the last frame added or, if none was, unchanged. Go on with
 *   step_to_caller().
 */
bool memo_follow(struct memo_walk *mw, struct walk *w, struct walk_frame *f, size_t max_frames,
		 struct unwind_stack *out);

/* Ends the walk: sets out->id, and stores the walk in the memo. out->end must be set. */
void memo_end(struct memo_walk *mw, const struct walk *w, struct unwind_stack *out);

#endif
