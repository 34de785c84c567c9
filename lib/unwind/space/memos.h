/*
 * Memos: the frames of the last walk of each thread of a target, kept to speed up the next walk.
 * This module stores memos; walk/memo.h writes and compares them.
 */
#ifndef LIB_UNWIND_SPACE_MEMOS_H
#define LIB_UNWIND_SPACE_MEMOS_H

#include <stdbool.h>
#include <stdint.h>

struct image;

/*
 * The number of memos of a space (target). Threads with the same tid % MEMO_THREADS share a memo.
 * More memos are rarely useful: a blocked thread needs no walk, and few machines run more than 256
 * threads at a time. The array takes 2 KB, the memo of a thread with 30 frames 1 KB.
 */
#define MEMO_THREADS 256

/*
 * The most frames of a memo. Longer stacks have no memo. The limit bounds the memory of a
 * space to 4 MB; programs without recursion stay far below.
 */
#define MEMO_FRAMES_MAX 512

/* The most images of a memo. A stack with frames in more images has no memo. */
#define MEMO_IMAGES_MAX 8

struct memo_frame {
	uint64_t addr; /* as walk_frame.addr */
	uint64_t sp;   /* stack pointer */
	uint64_t fp;   /* frame pointer; valid if fp_known */
	/*
	 * The places on the stack from which the walk read this frame: addr (the return address)
	 * at sp + ra_at, fp at sp + fp_at, with the member sp above. fp_at 0: the walk read no
	 * frame pointer, and fp is that of the called frame.
	 */
	int16_t ra_at;
	int16_t fp_at;
	bool fp_known;
	bool is_leaf;
	uint8_t reserved[2];
};

struct memo {
	uint32_t tid;
	uint32_t n;   /* frames; 0: the memo is empty */
	uint32_t cap; /* frames for which there is room */
	uint32_t n_images;
	uint64_t id;			       /* unwind_stack.id of the walk */
	struct image *images[MEMO_IMAGES_MAX]; /* whose rules the walk used; owned by the cache */
	struct memo_frame *frames;	       /* root first */
};

struct memos {
	struct memo **by_tid; /* MEMO_THREADS elements; NULL before the first memos_get() */
};

/* Frees all memos. Safe on a zeroed struct. */
void memos_fini(struct memos *m);

/* Empties all memos. Call it when rules have changed, or images have been freed or unmapped. */
void memos_clear(struct memos *m);

/*
 * Returns the memo of a thread, and makes an empty one if there is none. If the memo has the frames
 * of another thread with which tid shares it, empties the memo first. Owned by m. Returns NULL if
 * memory cannot be allocated.
 */
struct memo *memos_get(struct memos *m, uint32_t tid);

#endif
