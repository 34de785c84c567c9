/*
 * Versions: the mappings that have followed each other at one address, such as libraries that a
 * program loads in turn. Present mappings are those of the last maps. A mapping that was looked up
 * and is not in the maps any more becomes a replaced mapping, which the space keeps in a list:
 * frames of open chunks lie in it, and it may come back.
 *
 * Each mapping has a number, its version: the lowest one that no replaced mapping at the same
 * addresses has. Mappings of one image with one load bias share a version. A frame's address has
 * the version of its mapping in bits 56 to 62 (unwind.h).
 *
 * The maps are read rarely, so capture also watches memory: it reports hashes of the bytes by which
 * an image is recognised (its fingerprint, elf/fingerprint.h). If they match a replaced mapping
 * better than the present one, the two change places. If they match neither, the present one is in
 * doubt: walks take it as unmapped until memory no longer differs, or the maps no longer have it.
 * SPACE_DOUBTS_MAX (space.h) limits this.
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

/* The parts of the target's memory that capture hashes, and the hashes. */
struct watch {
	uint32_t list; /* unwind_watch.list */
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
	bool in_use; /* a mapping has another version than 0, or was in doubt */
	struct watch watch;
};

/* Gives the images of the replaced mappings back to the cache, and frees the list. */
void versions_fini(struct unwind_space *s);

/* Call it when the file of m, at map, was requested: sets its version, and watches its memory. */
void versions_add(struct unwind_space *s, const struct map *map, struct space_mapping *m);

/* Return replaced mapping i; i is less than s->versions.n. Owned by s. */
const struct map *versions_map(const struct unwind_space *s, size_t i);
struct space_mapping *versions_mapping(struct unwind_space *s, size_t i);

/*
 * To set new maps, call versions_are_full(), then versions_replace(), replace s->maps, and, if the
 * list was full, call versions_watch_anew().
 *
 * Returns true if the list would have more than VERSIONS_MAX mappings with those that maps no
 * longer have; or if it would have any and maps are empty, because the process has ended then.
 */
bool versions_are_full(const struct unwind_space *s, const struct maps *maps);

/*
 * Moves the mappings that maps no longer have to the list or, if full is set, empties the list. The
 * caller has moved the mappings that stay. If memory is short, the list loses mappings.
 */
void versions_replace(struct unwind_space *s, const struct maps *maps, bool full);

/* Begins a new list of watched parts, with those of the present mappings only. */
void versions_watch_anew(struct unwind_space *s);

/*
 * Compares all mappings with the hashes that capture has reported since the last call: exchanges
 * mappings, and begins or ends doubts. Drops pc_infos and memos if a mapping changes.
 */
void versions_settle(struct unwind_space *s);

/*
 * Returns the mapping, present or replaced, of a frame's address with its version; NULL: there is
 * none. Sets *ret_addr to the address without the version. Requests the file of a present mapping.
 */
struct space_mapping *versions_find(struct unwind_space *s, uint64_t addr, uint64_t *ret_addr);

/* Returns addr, an address of m, with the version of m in its upper bits. */
uint64_t versions_mark(const struct space_mapping *m, uint64_t addr);

/* Puts the versions of their mappings, or VERSION_DOUBT, into the addresses of all frames. */
void versions_mark_frames(const struct unwind_space *s, struct unwind_stack *stack);

#endif
