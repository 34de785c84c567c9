/*
 * Versions: the mappings that have followed each other at one address, such as libraries that a
 * program loads in turn. A mapping that was looked up and is gone stays in the list of replaced
 * mappings, because frames of open chunks lie in it, and because it may come back.
 *
 * Each mapping has a number, its version: 0, or, if a replaced mapping is at the same addresses,
 * the lowest number that is free there. A frame's address has the version of its mapping in bits 56
 * to 62 (unwind.h).
 *
 * The fingerprint of an image (elf/fingerprint.h) says by which bytes in memory it is recognised.
 * Capture watches them. If they are those of a replaced mapping, that mapping changes places with
 * the present one. If they are those of no known mapping, the present one is in doubt: it counts as
 * unmapped until it matches again, or the maps are read.
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

struct watch {
	uint32_t list; /* unwind_watch.list */
	size_t n;
	struct watch_part parts[WATCH_PARTS];
	uint64_t hashes[WATCH_PARTS]; /* the last ones that capture has reported */
	/* Addresses of the mappings whose images have parts. */
	uint64_t places[WATCH_PARTS];
	size_t n_places;
	bool changed;	/* capture does not have the list yet */
	bool has_news;	/* hashes or mappings have changed since versions_settle() */
	bool has_doubt; /* as unwind_space_has_doubt(), at versions_settle() */
};

struct versions {
	struct replaced_mapping *list; /* owned; oldest first */
	size_t n;
	bool in_use; /* a mapping has another version than 0, or was in doubt */
	struct watch watch;
};

/* Puts the images of the replaced mappings, and frees the list. */
void versions_fini(struct unwind_space *s);

/* Called when the image of m, the mapping map, is known: sets its version, and has it watched. */
void versions_add(struct unwind_space *s, const struct map *map, struct space_mapping *m);

/* Return replaced mapping i, which is less than s->versions.n. */
const struct map *versions_map(const struct unwind_space *s, size_t i);
struct space_mapping *versions_mapping(struct unwind_space *s, size_t i);

/*
 * Returns true if the list has no room for the mappings that are gone from s->maps if maps are the
 * present ones.
 */
bool versions_are_full(const struct unwind_space *s, const struct maps *maps);

/*
 * Called before maps take the place of s->maps, when the mappings that stay have been moved: moves
 * those that are gone to the list, or empties the list if it is full. If memory is short, mappings
 * are lost.
 */
void versions_replace(struct unwind_space *s, const struct maps *maps, bool full);

/* Called after versions_replace(full): watches what is mapped now, and nothing else. */
void versions_watch_anew(struct unwind_space *s);

/* Finds the mappings that memory shows by the hashes of capture. Forgets lookups if one changes. */
void versions_settle(struct unwind_space *s);

/*
 * Finds the mapping of a frame's address, which may be one that was replaced. *ret_addr is the
 * address without its version. NULL: there is none.
 */
struct space_mapping *versions_find(struct unwind_space *s, uint64_t addr, uint64_t *ret_addr);

/* Returns addr, an address of m, with the version of m. */
uint64_t versions_mark(const struct space_mapping *m, uint64_t addr);

/* Sets the versions of all frames. */
void versions_mark_frames(const struct unwind_space *s, struct unwind_stack *stack);

#endif
