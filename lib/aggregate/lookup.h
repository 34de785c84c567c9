/*
 * Looks up what a profile shows of a chunk's frames: function, source line, inlined
 * functions, in_app, and the image (ELF file) that each frame lies in.
 *
 * lookup_update() asks lib/unwind once for each new frame and keeps copies, as valid
 * UTF-8. It is called when the chunk is closed and when the table is written.
 * lookup_finish() prepares the profile of a closed chunk. lookup_fini() then forgets the
 * chunk. All strings belong to the struct lookup.
 */
#ifndef LIB_AGGREGATE_LOOKUP_H
#define LIB_AGGREGATE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/aggregate/in_app.h"
#include "lib/aggregate/stacks.h"
#include "lib/base/table.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

/*
 * Limit of the strings of a chunk's frames, in bytes of the payload (escaped). A string
 * that does not fit any more is left out: the frame has no function, package or file. The
 * size at which a chunk is due is estimated before its symbols are known; both together
 * stay below the 50 MB that the server accepts.
 */
#define LOOKUP_PAYLOAD_MAX (16u * 1000 * 1000)

/*
 * The same limit for source files, and for names of inlined functions, that only payloads for files
 * have. It is a limit of its own, so that what the server gets does not depend on them.
 */
#define LOOKUP_FILE_PAYLOAD_MAX (8u * 1000 * 1000)

/* Longest build-id that is kept, in bytes; most have 20. A longer one is cut. */
#define LOOKUP_ID_MAX 64

struct lookup_image {
	const char *path;
	uint64_t addr, vmaddr, size;
	size_t id_size;
	bool has_build_id;
	uint8_t id[LOOKUP_ID_MAX];
};

/* Data of a frame that its struct profile_frame does not have. */
struct lookup_detail {
	uint64_t start; /* address of the start of its function; 0: unknown */
	bool unnamed;	/* no symbol covers the address */
};

struct lookup {
	struct text text;
	struct profile_frame *frames; /* by the frame's index in struct stacks */
	size_t n_frames, cap_frames;
	struct lookup_detail *details; /* by frame */
	size_t cap_details;
	/* By frame. file and line are set only with lines_for_files. */
	struct profile_lines *lines;
	size_t cap_lines;
	struct profile_frame *inlined;
	size_t n_inlined, cap_inlined;
	struct lookup_image *images;
	size_t n_images, cap_images;
	struct table image_at;		      /* image.addr to index in images */
	struct profile_image *profile_images; /* made by lookup_finish() */
	size_t n_profile_images;
	size_t payload_bytes; /* of the strings so far, at most LOOKUP_PAYLOAD_MAX */
	/* Of those that only payloads for files have, at most LOOKUP_FILE_PAYLOAD_MAX. */
	size_t file_payload_bytes;
	/* Options: set by the caller after lookup_init(), kept by lookup_fini(). */
	bool demangle;
	bool inlined_for_files;		 /* only payloads for files have inlined functions */
	bool lines_for_files;		 /* only payloads for files have source files and lines */
	bool name_by_start, by_function; /* as in struct aggregate_options */
	struct in_app_rules in_app;
};

/* Initialises an empty lookup without options. Does not allocate. */
void lookup_init(struct lookup *l, uint64_t hash_seed);
/* Frees everything; the options stay. l may be NULL. */
void lookup_fini(struct lookup *l);

/*
 * Looks up the frames of s that l does not have yet, in the present maps of space. A frame
 * that lies in no image has package NULL. file and line are those of the function that the
 * symbol names: if another function was inlined there, line is the line of its call. With
 * lines_for_files the two are in l->lines and not in the frame. l->lines also has the functions
 * that were inlined at the frame.
 * main_path is the path of the main executable, for in_app().
 *
 * With name_by_start, a frame without a symbol is named by the start of its function, which
 * an FDE gives, "libc.so.6+0x89f60": the image, and the distance from the image's start. If
 * no FDE covers the address, function is NULL.
 *
 * With by_function, all frames of a function are equal. Their address is
 * unwind_after_call() of the function's start, and their line is the line of that start;
 * an inlined function has a file and no line. A frame whose function has no known start
 * keeps its own address.
 *
 * Returns 0, or -ENOMEM: the remaining frames are looked up by the next call.
 */
must_check int lookup_update(struct lookup *l, const struct stacks *s, struct unwind_space *space,
			     const char *main_path);

/*
 * Prepares the profile of a closed chunk, after lookup_update() has looked up all frames
 * of s:
 * - A frame at the root or next to it that has no symbol is not in_app. If the frame has no
 *   name either, it is named by its address, "libc.so.6+0x2724a" or "unknown+0x7f...",
 *   because the server cuts off the two outermost frames of a stack whose frame next to the
 *   root has no name.
 * - l->profile_images are the images with an id, by address, without overlap: of
 *   two images at the same address the larger one stays, and an image that
 *   reaches into the next one ends where that one starts. (The server takes the
 *   last image that starts at or below an address, so the result is the same.)
 * Returns 0 or -ENOMEM.
 */
must_check int lookup_finish(struct lookup *l, const struct stacks *s, struct unwind_space *space);

#endif
