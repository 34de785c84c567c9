/*
 * Versions: the mappings that have followed each other at one address, such as libraries that a
 * program loads in turn. Present mappings are those of the last maps. A mapping that was looked up
 * and is not in the maps any more becomes a replaced mapping, which the space keeps in a list:
 * frames of open chunks lie in it, and it may come back.
 *
 * Each mapping has a number, its version: the lowest one that no replaced mapping at the same
 * addresses has. A frame's address has the version of its mapping in bits 56 to 62 (unwind.h). The
 * same image at the same place keeps its version:
 *
 *     a.so is mapped at 0x7f00     a.so: version 0, present
 *     b.so is mapped there         b.so: version 1, present     a.so: version 0, replaced
 *     a.so is mapped there again   a.so: version 0, present     b.so: version 1, replaced
 *
 * The maps are read rarely, so capture also watches memory: capture reports hashes of the bytes by
 * which an image is recognised (its fingerprint, elf/fingerprint.h). A mapping has rank 2 if all
 * reported hashes equal those of its image (memory matches it), rank 0 if one does not (memory
 * differs from it), and rank 1 if no hash was reported.
 * - If a replaced mapping has a higher rank than the present one, the two change places.
 * - If memory differs from the present mapping after that, the present mapping is in doubt: walks
 *   take it as unmapped. The doubt ends when memory no longer differs, when the maps no longer have
 *   the mapping, or after SPACE_DOUBTS_MAX readings of the maps (space.h).
 */
#ifndef LIB_UNWIND_SPACE_VERSIONS_H
#define LIB_UNWIND_SPACE_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/watch_part.h"
#include "lib/unwind/space/maps.h"
#include "lib/unwind/unwind.h"

struct unwind_space;
struct space_mapping;
struct replaced_mapping;

/*
 * The most replaced mappings of a space. A program that loads code without end reaches any limit;
 * its chunks then end early (unwind_space_would_forget()).
 */
#define VERSIONS_MAX 64

/* The version of frames in a mapping that is in doubt. No mapping has it. */
#define VERSION_DOUBT 127

/* The parts of the target's memory that capture hashes, and the hashes (struct unwind_watch). */
struct watch {
	uint32_t list; /* unwind_watch.list: the number of this list; 0: no list yet */
	size_t n;
	struct watch_part parts[WATCH_PARTS];
	uint64_t hashes[WATCH_PARTS]; /* the last ones that capture has reported; 0: unknown */
	/* Start addresses of the mappings whose images have parts, or whose files were refused. */
	uint64_t places[WATCH_PARTS];
	size_t n_places;
	bool changed;	/* capture does not have the list yet */
	bool has_news;	/* hashes or mappings have changed since versions_settle() */
	bool has_doubt; /* unwind_space_has_doubt(), as of the last versions_settle() */
};

struct versions {
	struct replaced_mapping *list; /* owned; oldest first */
	size_t n;
	bool in_use; /* some mapping has had another version than 0, or was in doubt */
	struct watch watch;
};

/* Gives the images of the replaced mappings back to the cache, and frees the list. */
void versions_fini(struct unwind_space *s);

/*
 * Sets the version of m, a mapping at the addresses of map, and has the memory of m watched if the
 * list of watched parts has room. Call it after the request for the file of m: m->image, m->bias
 * and m->refused are set.
 */
void versions_add(struct unwind_space *s, const struct map *map, struct space_mapping *m);

/* Return replaced mapping i; i is less than s->versions.n. Owned by s. */
const struct map *versions_map(const struct unwind_space *s, size_t i);
struct space_mapping *versions_mapping(struct unwind_space *s, size_t i);

/*
 * Returns true if the list of replaced mappings, with those that maps no longer have, would exceed
 * its limit: VERSIONS_MAX or, if maps are empty because the process has ended, 0.
 *
 * unwind_space_set_maps() (unwind.h) calls this function and the next two to set new maps:
 * 1. It moves present mappings that the new maps still have, and replaced ones that the new maps
 *    have again, into the new maps.
 * 2. It calls versions_are_full() and versions_replace(), and then replaces s->maps.
 * 3. If the list was full, it calls versions_watch_anew().
 */
bool versions_are_full(const struct unwind_space *s, const struct maps *maps);

/*
 * Moves the mappings that maps no longer have to the list, and removes from the list those that are
 * back. If full is set, empties the list instead, and moves nothing to it. If memory is short, the
 * list loses mappings.
 */
void versions_replace(struct unwind_space *s, const struct maps *maps, bool full);

/* Begins a new list of watched parts, with those of the present mappings only. */
void versions_watch_anew(struct unwind_space *s);

/*
 * Compares the mappings with the hashes, if hashes or mappings have changed since the last call:
 * lets mappings change places, begins and ends doubts, and drops pc_infos and memos if it did so.
 */
void versions_settle(struct unwind_space *s);

/*
 * Returns the mapping that covers addr and has the version in the upper bits of addr. It is present
 * or replaced; NULL: there is none. Sets *ret_addr to addr without the version. Requests the file
 * of the present mapping at addr.
 */
struct space_mapping *versions_find(struct unwind_space *s, uint64_t addr, uint64_t *ret_addr);

/* Returns addr, an address of m, with the version of m in its upper bits. */
uint64_t versions_mark(const struct space_mapping *m, uint64_t addr);

/* Puts into each frame's address the version of its mapping; VERSION_DOUBT if that is in doubt. */
void versions_mark_frames(const struct unwind_space *s, struct unwind_stack *stack);

#endif
