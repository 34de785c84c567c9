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

struct image;
struct unwind_stack;
struct walk;
struct walk_frame;

/*
 * Threads whose walks a space keeps, by the lower bits of their numbers: more
 * than can run at a time, and those that sleep need no walk. The array takes
 * 2 KB, a thread with 30 frames 1 KB.
 */
#define MEMO_THREADS 256

/*
 * Longer stacks are walked step by step: this bounds a space's memory to 4 MB,
 * of which a program without recursion comes nowhere near.
 */
#define MEMO_FRAMES_MAX 512

/* A stack through more images than this is not kept. */
#define MEMO_IMAGES_MAX 8

struct memo_frame {
	uint64_t addr; /* as walk_frame.addr */
	uint64_t sp;
	uint64_t fp; /* if fp_known */
	/* Where the words are, from sp, that led from the frame below to it. */
	int16_t ra_at;
	int16_t fp_at; /* 0: fp is the one of the frame below */
	bool fp_known;
	bool is_leaf;
	uint8_t reserved[2];
};

struct memo {
	uint32_t tid;
	uint32_t n; /* frames; 0: nothing is known */
	uint32_t cap;
	uint32_t n_images;
	uint64_t id; /* unwind_stack.id of that walk */
	struct image *images[MEMO_IMAGES_MAX];
	struct memo_frame *frames; /* root first */
};

struct memos {
	struct memo **by_tid; /* MEMO_THREADS; NULL before the first */
};

/* Forgets everything and frees it. */
void memos_fini(struct memos *m);

/* Forgets everything: rules may be others now, or images gone. */
void memos_clear(struct memos *m);

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
 * is complete, and like_n and like_id are set. False: go on by walk_step.
 */
bool memo_follow(struct memo_walk *mw, struct walk *w, struct walk_frame *f, size_t max_frames,
		 struct unwind_stack *out);

/* The walk has ended: sets out->id, and keeps what the next one can use. */
void memo_end(struct memo_walk *mw, const struct walk *w, struct unwind_stack *out);

#endif
