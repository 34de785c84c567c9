/*
 * The last walk of each thread of a target, kept for the next one: walk/memo.h
 * writes and compares it. This module only stores.
 */
#ifndef LIB_UNWIND_SPACE_MEMOS_H
#define LIB_UNWIND_SPACE_MEMOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image;

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
 * The memo of a thread, made if there is none. Threads share a memo by the
 * lower bits of their numbers: one that was another thread's is emptied. NULL
 * if memory cannot be allocated. Owned by m.
 */
struct memo *memos_get(struct memos *m, uint32_t tid);

#endif
