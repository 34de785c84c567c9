/*
 * The address space of a target: its executable mappings and the images that are
 * mapped there. The space also holds two caches of the walk: rules by address
 * (pc_info.h) and the last walk of each thread (memos.h).
 *
 * The space requests a file from unwind_files, and waits for it, when an address in
 * its mapping is looked up for the first time. The CFI and symbols are read immediately, and the
 * file with the lines is opened, because it may be out of reach later: the target may exit.
 */
#ifndef LIB_UNWIND_SPACE_SPACE_H
#define LIB_UNWIND_SPACE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/unwind/image/cache.h"
#include "lib/unwind/image/perf_map.h"
#include "lib/unwind/space/maps.h"
#include "lib/unwind/space/memos.h"
#include "lib/unwind/space/versions.h"
#include "lib/unwind/unwind.h"

/* The image of one mapping, and the result of requests for its file. */
struct space_mapping {
	struct image *image; /* a reference; NULL: none */
	/*
	 * The mapping of the image's file: this one or, if the program has replaced its text by a
	 * copy in other memory, another one of the same file. Not valid without an image.
	 */
	struct map file;
	uint64_t bias;		       /* address in memory minus address in the file */
	struct file_identity identity; /* of the file; inode 0: unknown */
	bool generated; /* code that the target made at run time: no file, no image */
	bool tried;	/* the file was requested */
	bool refused;	/* the first request for the file failed */
	bool lost;	/* a later one failed: not tried again with these maps */
	/* versions.h */
	bool is_doubted; /* memory does not look like image: it counts as unmapped */
	/*
	 * How often maps have had it, doubted or refused, since memory looked like image; of a
	 * replaced mapping: how often they have not had it although memory looked like image.
	 */
	uint8_t doubts;
	bool trusts_maps; /* memory never looks like image: a debugger may have changed the code */
	uint8_t version;
	uint8_t n_parts;
	/* By part of the image's fingerprint: its index in the list of watched parts. */
	uint8_t parts[FINGERPRINT_PARTS];
};

/*
 * After so many readings of the maps the mapping of a doubted image is right, and not the doubt.
 * They take a second at least. A program that swaps libraries in a rhythm may show the same one in
 * the readings of half a second.
 */
#define SPACE_DOUBTS_MAX 20

struct unwind_space {
	struct unwind_cache *cache;
	const struct unwind_files *files;
	void *ctx;
	enum unwind_symbols symbols;
	uint64_t lines_lost;   /* as unwind_space_take_lines_lost() */
	uint64_t far_mappings; /* unwind_space_take_far_mappings() */
	const char *far_path;
	struct perf_map perf_map;
	bool perf_map_asked; /* the perf map was requested since the maps were set */
	struct maps maps;
	struct space_mapping *mappings; /* owned; one for each of maps, in their order */
	struct versions versions;
	struct pc_info *pc_infos; /* owned; filled by pc_info.c; NULL: none yet */
	/*
	 * cache->generation when pc_infos and memos were filled. If the cache has
	 * another one now, they are stale.
	 */
	uint64_t generation;
	struct memos memos;
};

/*
 * Drops pc_infos and memos if they are stale: the cache has freed rows to which they
 * may refer. Each public function that looks up addresses calls this right after
 * cache_begin().
 */
void space_begin(struct unwind_space *s);

/*
 * Returns the mapping that covers addr; NULL if no mapping does. Requests the mapping's file if
 * that was not done before. Valid until the maps are replaced.
 *
 * If the mapping has no file, or one that is not mapped as an ELF segment, its image is the one
 * that has an executable segment at this place by its other mappings: the program has copied its
 * text into huge pages, for instance. Without such an image, or if the file was refused, the image
 * is NULL.
 */
struct space_mapping *space_mapping_now(struct unwind_space *s, uint64_t addr);

/* The same for a walk: NULL also if the mapping is in doubt. */
struct space_mapping *space_mapping(struct unwind_space *s, uint64_t addr);

/* Returns true if maps has every address of old with the same file and offset. */
bool space_still_there(const struct map *old, const struct maps *maps);

/* Frees what was looked up by rules and images that may be gone now. */
void space_forget_lookups(struct unwind_space *s);

/*
 * Reads the CFI of m->image, which must not be NULL, and its symbols, unless
 * s->symbols is UNWIND_SYMBOLS_NONE; opens the file with its lines, if it is
 * UNWIND_SYMBOLS_LINES. Does nothing if they have been read. Returns false if the
 * CFI cannot be read: the file cannot be opened again, cache_rows() returned -EAGAIN, or memory
 * is short. m->lost then prevents further requests. An error with the symbols is ignored: names
 * are missing.
 */
bool space_read_image(struct unwind_space *s, struct space_mapping *m);

/*
 * Reads the names of the PLT stubs of m->image, which must not be NULL, unless that was done.
 * Returns false if the file cannot be opened again or read yet, or memory is short.
 */
bool space_read_plt(struct unwind_space *s, struct space_mapping *m);

/*
 * Requests the target's perf map, so that it is open when names are looked up. Does so
 * once until the maps are replaced, and never with UNWIND_SYMBOLS_NONE.
 */
void space_open_perf_map(struct unwind_space *s);

/*
 * Looks up the name of code that the target generated at run time, in its perf map.
 * Returns false if no name is found. *ret_name is valid until the perf map is read
 * again; *ret_offset is the distance in bytes from the start of the code to addr.
 */
bool space_find_jit_symbol(struct unwind_space *s, uint64_t addr, const char **ret_name,
			   uint64_t *ret_offset);

/* Returns the description by which file_source_open() opens the file that is mapped at map. */
struct file_source space_source(const struct unwind_space *s, const struct map *map);

#endif
