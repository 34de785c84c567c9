/*
 * Memos: the last walk of each thread of a target, kept to speed up the next one.
 * This module stores them; walk/memo.h writes and compares them.
 */
#ifndef LIB_UNWIND_SPACE_MEMOS_H
#define LIB_UNWIND_SPACE_MEMOS_H

#include <stdbool.h>
#include <stdint.h>

struct image;

/*
 * The number of memos of a space. Threads with the same lower bits of their thread ids
 * share a memo. A blocked thread needs no walk, and few machines have processors for more
 * than 256 threads at a time. The array takes 2 KB, the memo of a thread with 30 frames
 * 1 KB.
 */
#define MEMO_THREADS 256

/*
 * Frames of a memo. Longer stacks have no memo. The limit bounds the memory of a
 * space to 4 MB; programs without recursion stay far below.
 */
#define MEMO_FRAMES_MAX 512

/* A stack through more images has no memo. */
#define MEMO_IMAGES_MAX 8

struct memo_frame {
	uint64_t addr; /* as walk_frame.addr */
	uint64_t sp;
	uint64_t fp; /* valid if fp_known */
	/*
	 * Offsets from sp of the words that the step from the called frame to this one
	 * has read. fp_at 0: fp is that of the called frame.
	 */
	int16_t ra_at;
	int16_t fp_at;
	bool fp_known;
	bool is_leaf;
	uint8_t reserved[2];
};

struct memo {
	uint32_t tid;
	uint32_t n; /* frames; 0: the memo is empty */
	uint32_t cap;
	uint32_t n_images;
	uint64_t id; /* unwind_stack.id of that walk */
	struct image *images[MEMO_IMAGES_MAX];
	struct memo_frame *frames; /* root first */
};

struct memos {
	struct memo **by_tid; /* MEMO_THREADS; NULL before the first */
};

/* Frees all memos. Safe on a zeroed struct. */
void memos_fini(struct memos *m);

/* Empties all memos. Called when rules have changed or images are gone. */
void memos_clear(struct memos *m);

/*
 * Returns the memo of a thread, and makes one if there is none. A memo of another thread
 * with the same lower bits is emptied first. Owned by m. Returns NULL if memory cannot be
 * allocated.
 */
struct memo *memos_get(struct memos *m, uint32_t tid);

#endif
