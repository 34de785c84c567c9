/*
 * What a chunk's frames are called and which images they lie in: asked of
 * lib/unwind once a frame, copied, made valid text.
 */
#ifndef LIB_AGGREGATE_LOOKUP_H
#define LIB_AGGREGATE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/aggregate/in_app.h"
#include "lib/aggregate/stacks.h"
#include "lib/base/text.h"
#include "lib/base/table.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

/*
 * What the strings of a chunk's frames may take in the payload, escaped. A
 * chunk is cut before its symbols are known; together with the cut this stays
 * below the server's 50 MB. Frames beyond it have neither function nor package.
 */
#define LOOKUP_PAYLOAD_MAX (16u * 1000 * 1000)

/* More than any build-id (20 bytes mostly); the rest of a longer one is cut. */
#define LOOKUP_ID_MAX 64

struct lookup_image {
	const char *path;
	uint64_t addr, vmaddr, size;
	size_t id_size;
	bool has_build_id;
	uint8_t id[LOOKUP_ID_MAX];
};

/* What is known of a frame beside what goes into a profile. */
struct lookup_detail {
	/* What was inlined there, innermost first, in lookup.inlined. */
	uint32_t first, n;
	uint64_t start; /* of its function; 0: not known */
	bool unnamed;	/* no symbol covers it */
};

struct lookup {
	struct text text;
	struct profile_frame *frames; /* by the index in stacks */
	size_t n_frames, cap_frames;
	struct lookup_detail *details; /* by frame */
	size_t cap_details;
	struct profile_frame *inlined;
	size_t n_inlined, cap_inlined;
	struct lookup_image *images;
	size_t n_images, cap_images;
	struct table image_at;		      /* image.addr to index */
	struct profile_image *profile_images; /* made by lookup_finish */
	size_t n_profile_images;
	size_t payload_bytes;
	/* Set by the caller; lookup_fini keeps them. */
	bool demangle;
	bool inlined_too; /* look for inlined functions */
	/* As in aggregate_options. */
	bool name_starts, by_function;
	struct in_app_rules in_app;
};

/* Empty. Allocates nothing. */
void lookup_init(struct lookup *l, uint64_t hash_seed);
/* Frees everything; l is as after lookup_init. Takes NULL. */
void lookup_fini(struct lookup *l);

/*
 * Looks up the frames of s that l does not have yet. A frame in no image has
 * package NULL. name_starts: a frame without a symbol is named by where its
 * function (its FDE) starts, "libc.so.6+0x89f60": the image and the distance
 * from where that starts. Where no FDE covers it, function is NULL. Its source
 * is where the function that its symbol names is: at the call of what was
 * inlined, if something was.
 *
 * by_function: frames of one function are equal, whatever their addresses are.
 * Each has unwind_after_call() of the function's start as its address, and the
 * source of that start; an inlined function has its file and no line. A frame
 * of which no start is known keeps its own address. 0 or -ENOMEM.
 */
must_check int lookup_update(struct lookup *l, const struct stacks *s, struct unwind_space *space,
			     const char *main_path);

/*
 * Prepares what goes into the profile:
 * - A frame at or next to the root that has no symbol is not in_app. If it
 *   has no name either, its own address makes one, "libc.so.6+0x2724a" or
 *   "unknown+0x7f...": the server cuts a stack whose frame next to the root has
 *   no name.
 * - l->profile_images: the images with an id, by address. None overlap: of two
 *   at the same address the larger stays, and one that reaches into the next
 *   ends where that starts. (The server takes the last one that starts at or
 *   below an address; this is what it would do.)
 * 0 or -ENOMEM.
 */
must_check int lookup_finish(struct lookup *l, const struct stacks *s, struct unwind_space *space);

#endif
