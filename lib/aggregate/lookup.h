/*
 * Looks up what a profile shows of a chunk's frames: function, source line, inlined functions,
 * in_app (whether the code belongs to the application), and the image (ELF file) in which the frame
 * lies.
 *
 * lookup_update() asks lib/unwind once for each new frame and keeps copies, as valid UTF-8.
 * aggregate.c calls it when the chunk is closed, and in aggregate_update_table().
 * lookup_finish() then prepares the profile of the closed chunk. After the profile has been used,
 * lookup_fini() forgets the chunk. All strings belong to the struct lookup.
 *
 * Some data are only in payloads for files, since Sentry's server does not accept them
 * (proto/profile.h).
 */
#ifndef LIB_AGGREGATE_LOOKUP_H
#define LIB_AGGREGATE_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/aggregate/in_app.h"
#include "lib/aggregate/stacks.h"
#include "lib/base/table.h"
#include "lib/base/string_pool.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

/*
 * The most bytes that the strings of a chunk's frames take in the payload (escaped). A string that
 * does not fit any more is left out: the frame has no function, package or file. Reason: a chunk is
 * due when its estimated size reaches 20 MB, and the estimate is made before the strings are known.
 * Both together stay below the 50 MB that the server accepts.
 */
#define LOOKUP_PAYLOAD_MAX (16u * 1000 * 1000)

/*
 * The most bytes that source files and names of inlined functions take if only payloads for files
 * have them. This limit is separate, so that these strings do not change what the server gets.
 */
#define LOOKUP_FILE_PAYLOAD_MAX (8u * 1000 * 1000)

/* The most bytes of a build-id that are kept. A longer one is cut; most have 20 bytes. */
#define LOOKUP_ID_MAX 64

/* An image of the chunk: the members are those of struct unwind_image, path as valid UTF-8. */
struct lookup_image {
	const char *path;
	uint64_t addr, vmaddr, size;
	size_t id_size; /* 0: the image has no id */
	bool has_build_id;
	uint8_t id[LOOKUP_ID_MAX];
};

/* Data of a frame that its struct profile_frame does not have. */
struct lookup_detail {
	uint64_t start; /* address of the start of the frame's function; 0: unknown */
	bool unnamed;	/* no symbol covers the frame's address */
};

struct lookup {
	struct string_pool text;
	struct profile_frame *frames; /* by the frame's index in struct stacks */
	size_t n_frames, cap_frames;
	struct lookup_detail *details; /* by frame */
	size_t cap_details;
	/* By frame: its range in inlined; with lines_for_files also the frame's file and line. */
	struct profile_lines *lines;
	size_t cap_lines;
	struct profile_frame *inlined; /* inlined functions of all frames */
	size_t n_inlined, cap_inlined;
	struct lookup_image *images;
	size_t n_images, cap_images;
	struct table image_at;		      /* lookup_image.addr to index in images */
	struct profile_image *profile_images; /* made by lookup_finish() */
	size_t n_profile_images;
	size_t payload_bytes; /* bytes counted against LOOKUP_PAYLOAD_MAX */
	/* Bytes counted against LOOKUP_FILE_PAYLOAD_MAX. */
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
 * Looks up the frames of s that l does not have yet, in the present maps of space. All calls
 * between two lookup_fini() must have the same s. main_path is the path of the main executable. The
 * members of each frame (struct profile_frame) are then:
 * - package is the path of the image; NULL: the frame lies in no image.
 * - function is the name that the symbol gives; NULL: no symbol covers the address.
 * - file and line are the source position in that function. If another function was inlined there,
 *   they are the position of the call. With lines_for_files file and line are in l->lines and not
 *   in the frame.
 * - l->lines has the range in l->inlined of the functions inlined at the frame, innermost first.
 * - in_app is the result of in_app(). A frame in no image is in_app if its code has a name in the
 *   target's /tmp/perf-PID.map, in which a just-in-time compiler lists its functions.
 *
 * With name_by_start, a frame without a symbol is named by the start of its function, which is
 * found in an FDE (of the call frame information). The name is the image and the distance of that
 * start from the image's start, "libc.so.6+0x89f60". If no FDE covers the address, function is
 * NULL.
 *
 * With by_function, all frames of a function are equal. Their address is unwind_after_call() of the
 * function's start, and their line is the line of that start; an inlined function has a file and no
 * line. A frame whose function has no known start keeps its own address.
 *
 * Returns 0, or -ENOMEM: the next call looks up the remaining frames.
 */
must_check int lookup_update(struct lookup *l, const struct stacks *s, struct unwind_space *space,
			     const char *main_path);

/*
 * Prepares the profile of a closed chunk, after lookup_update() has looked up all frames of s:
 * - Handles the frames at the root or next to the root. Without a symbol such a frame is not
 *   in_app. Without a function it gets its address as the name, "libc.so.6+0x2724a" or
 *   "unknown+0x7f...". Reason: the server cuts off the two outermost frames of a stack whose frame
 *   next to the root has no name.
 * - Makes l->profile_images: the images with an id, sorted by address, without overlap. An image
 *   that reaches into the next one is shortened to end there. This changes nothing for the server,
 *   which takes the last image that starts at or below an address.
 * Returns 0 or -ENOMEM.
 */
must_check int lookup_finish(struct lookup *l, const struct stacks *s, struct unwind_space *space);

#endif
