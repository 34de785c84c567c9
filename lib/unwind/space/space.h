/*
 * The address space of a target: its executable mappings and the images that are
 * mapped there. The space also holds two caches of the walk: rules by address
 * (pc_info.h) and the last walk of each thread (memos.h).
 *
 * When an address in a mapping is looked up for the first time, the space requests the mapping's
 * file by unwind_files, and waits for the file. At once it also calls space_read_image(), because
 * files may be out of reach when the target has exited.
 *
 * A reading (of the maps) is one call of unwind_space_set_maps().
 *
 * Functions that look up addresses or read files may only be called between cache_begin() and
 * cache_end() (image/cache.h).
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
	struct image *image; /* a reference, which cache_put() gives back; NULL: none */
	/*
	 * The mapping by which the image was found: this one or, if the program has replaced its
	 * text by a copy in other memory, that of maps_above(). Not valid if image is NULL.
	 */
	struct map file;
	uint64_t bias;		       /* address in memory minus address in the file */
	struct file_identity identity; /* of the file; inode 0: unknown */
	bool generated; /* code that the target made at run time: no file, no image */
	bool tried;	/* the file was requested */
	bool refused;	/* the first request failed, or gave another file than the maps name */
	bool lost;	/* a later request failed: no further one until the next reading */
	/* The members below belong to versions.h, which explains them. */
	bool is_doubted; /* memory does not match the image: walks take the mapping as unmapped */
	/*
	 * How many readings of the maps have contradicted memory; at SPACE_DOUBTS_MAX the space
	 * trusts the maps. What counts:
	 * - of a present mapping: a reading that has the mapping, although it is doubted or
	 *   refused. When memory matches its image, doubts becomes 0.
	 * - of a replaced mapping: a reading that lacks the mapping, although memory matches its
	 *   image.
	 */
	uint8_t doubts;
	bool trusts_maps; /* doubts reached SPACE_DOUBTS_MAX: memory is not compared any more */
	uint8_t version;
	uint8_t n_parts;
	/* For each part of the image's fingerprint: its index in versions.watch.parts. */
	uint8_t parts[FINGERPRINT_PARTS];
};

/*
 * After this many readings with a doubted mapping the space trusts the maps and ends the doubt: a
 * debugger, for instance, may have changed the bytes. So many readings take about a second. Half as
 * many are too few for a program that swaps two libraries regularly: at all of these readings the
 * maps may by chance show the same library.
 */
#define SPACE_DOUBTS_MAX 20

struct unwind_space {
	struct unwind_cache *cache;
	const struct unwind_files *files;
	void *ctx;
	enum unwind_symbols symbols;
	uint64_t lines_lost;	   /* as unwind_space_take_lines_lost() */
	const char *lines_limited; /* as unwind_space_take_lines_limited() */
	uint64_t far_mappings;	   /* as unwind_space_take_far_mappings() */
	const char *far_path;	   /* *ret_path of that function */
	struct perf_map perf_map;
	bool perf_map_asked; /* the perf map was requested since the maps were set */
	struct maps maps;
	struct space_mapping *mappings; /* owned; one for each of maps, in their order */
	struct versions versions;
	struct pc_info *pc_infos; /* owned; filled by pc_info.c; NULL: none yet */
	/* cache->generation when pc_infos and memos were filled; another value: they are stale */
	uint64_t generation;
	struct memos memos;
};

/*
 * Drops pc_infos and memos if the cache has freed rows since they were filled, because they may
 * refer to these rows. Call it directly after cache_begin().
 */
void space_begin(struct unwind_space *s);

/*
 * Returns the present mapping that covers addr; NULL if there is none. addr has no version in its
 * upper bits. Requests the mapping's file if that was not done before. The result is valid until
 * the maps are replaced.
 *
 * The image of the result is the first of these that exists:
 * - the image of the file of maps_above(), if an executable segment of that file belongs at this
 *   place: then the program has copied its text, into huge pages for instance;
 * - the image of the mapping's own file, if it could be opened and has a segment at the mapping's
 *   offset (image_bias());
 * - NULL.
 */
struct space_mapping *space_any_mapping(struct unwind_space *s, uint64_t addr);

/* As space_any_mapping(), for a walk: returns NULL also if the mapping is in doubt (versions.h). */
struct space_mapping *space_certain_mapping(struct unwind_space *s, uint64_t addr);

/* Returns true if mappings in maps cover all of old, with the same file and offsets in the file. */
bool space_still_there(const struct map *old, const struct maps *maps);

/* Drops pc_infos and memos. Call it when the mappings have changed. */
void space_forget_lookups(struct unwind_space *s);

/*
 * Reads the CFI of m->image, which must not be NULL. Also reads its symbols, unless s->symbols is
 * UNWIND_SYMBOLS_NONE, and opens the file with its lines if s->symbols is UNWIND_SYMBOLS_LINES.
 * Skips what has been read. An error with symbols or lines is ignored: names or lines are missing.
 *
 * Returns false if the CFI cannot be read: the file cannot be opened again, must not be read again
 * yet (-EAGAIN of cache_rows()), or memory is short. It then sets m->lost.
 */
bool space_read_image(struct unwind_space *s, struct space_mapping *m);

/*
 * Reads the names of the PLT stubs of m->image, which must not be NULL, unless that was done.
 * Returns false if the file cannot be opened again, must not be read again yet, or memory is short.
 */
bool space_read_plt(struct unwind_space *s, struct space_mapping *m);

/*
 * Requests the target's perf map, so that it is open when names are looked up. Does so at most
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

/* Returns what file_source_open() and the cache need to request the file that is mapped at map. */
struct file_source space_source(const struct unwind_space *s, const struct map *map);

#endif
