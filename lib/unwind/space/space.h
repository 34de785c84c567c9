/*
 * The address space of a target: its executable mappings and the images that are
 * mapped there. Holds also what the walk keeps for each target: rules by address
 * (pc_info.h) and last walks (memos.h).
 *
 * A file is asked for when an address in its mapping is looked up for the first
 * time. Its rows and symbols are read at once, because the target may have exited
 * when they are needed.
 */
#ifndef LIB_UNWIND_SPACE_SPACE_H
#define LIB_UNWIND_SPACE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/image/cache.h"
#include "lib/unwind/image/perf_map.h"
#include "lib/unwind/space/maps.h"
#include "lib/unwind/space/memos.h"
#include "lib/unwind/unwind.h"

/* What is known of a mapping beside its line in maps. */
struct space_mapping {
	struct image *image; /* a reference; NULL: none */
	uint64_t bias;
	struct file_identity identity; /* of the file; inode 0: unknown */
	bool tried;		       /* the file was asked for */
	bool refused;		       /* and the answer was an error */
	bool lost;		       /* a later request for it failed */
};

struct unwind_space {
	struct unwind_cache *cache;
	const struct unwind_files *files;
	void *ctx;
	enum unwind_symbols symbols;
	uint64_t lines_skipped; /* addresses that got no lines because of a limit */
	struct perf_map perf_map;
	bool perf_map_asked; /* for its file, since the maps were set */
	struct maps maps;
	struct space_mapping *mappings; /* one for each of maps */
	struct pc_info *pc_infos;	/* owned; filled by pc_info.c; NULL: none yet */
	uint64_t generation;		/* unwind_cache.generation of these */
	struct memos memos;
};

/*
 * Forgets rules and walks that the cache has freed the rows of. Each public function
 * calls it after cache_begin().
 */
void space_begin(struct unwind_space *s);

/*
 * The mapping that covers addr, with its image (which may be NULL). Asks for the file
 * if that was not done. Returns NULL if no mapping covers addr; otherwise *ret_map is
 * its line in maps.
 */
struct space_mapping *space_mapping(struct unwind_space *s, uint64_t addr,
				    const struct map **ret_map);

/*
 * Reads the rows of a mapping's image and, unless the space has no symbols, its
 * symbols. Does nothing if they have been read. Returns false if the file cannot be
 * had any more.
 */
bool space_read_image(struct unwind_space *s, struct space_mapping *m, const struct map *map);

/*
 * Asks for the target's perf map, once until the maps are replaced, so that it is open
 * when names are looked up.
 */
void space_open_perf_map(struct unwind_space *s);

/*
 * The name of code that the target generated at run time, at an address without an
 * ELF file. Returns as perf_map_find().
 */
bool space_find_jit_symbol(struct unwind_space *s, uint64_t addr, const char **ret_name,
			   uint64_t *ret_offset);

/* Where the file of a mapping comes from. */
struct file_source space_source(const struct unwind_space *s, const struct map *map);

#endif
