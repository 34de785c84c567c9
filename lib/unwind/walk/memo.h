/*
 * What the last walk of a thread found, so that the next one need not look for
 * it again: most of a stack is as it was, or comes back after a call.
 *
 * A step by a usual rule (struct rule) depends on the address, the stack
 * pointer, the frame pointer, and the one or two words that it reads. Where a
 * frame has the same three, and the words are the same, its caller is the same.
 * That is all that is believed: each word is compared on each walk, nothing is
 * taken to be unchanged.
 *
 * Only the part of a stack is kept that goes to the root by such steps. A walk
 * that ends in another way forgets the thread.
 */
#ifndef LIB_UNWIND_WALK_MEMO_H
#define LIB_UNWIND_WALK_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/space/memos.h"
#include "lib/unwind/unwind.h"
#include "lib/unwind/walk/walk.h"

/*
 * A walk under way: the frames found until now that a memo could keep, the
 * innermost first.
 */
struct memo_walk {
	struct memo *memo; /* NULL: there is none */
	uint32_t next;	   /* memo->frames[next] may be the frame that comes */
	uint32_t kept;	   /* this many of memo->frames, from the root, hold */
	uint32_t n;
	bool too_long;
	uint32_t n_images;
	struct image *images[MEMO_IMAGES_MAX + 1];
	struct memo_frame frames[MEMO_FRAMES_MAX];
};

/* Starts a walk with what is known of the thread; m may be NULL. */
void memo_begin(struct memo_walk *mw, struct memos *m, uint32_t tid);

/*
 * The walk has come to f, which is in out already, by the step that w tells of.
 * Follows what is known from there: adds the callers that are certainly the
 * same to out, and moves f to the last of them. True if that is the root: out
 * is complete, and shared_n and shared_id are set. False: go on by walk_step.
 */
bool memo_follow(struct memo_walk *mw, struct walk *w, struct walk_frame *f, size_t max_frames,
		 struct unwind_stack *out);

/* The walk has ended: sets out->id, and keeps what the next one can use. */
void memo_end(struct memo_walk *mw, const struct walk *w, struct unwind_stack *out);

#endif
