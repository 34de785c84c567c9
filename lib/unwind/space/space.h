/*
 * A target's address space: its executable mappings, the images behind them,
 * and a small cache from addresses to rules.
 */
#ifndef LIB_UNWIND_SPACE_SPACE_H
#define LIB_UNWIND_SPACE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/image/cache.h"
#include "lib/unwind/space/maps.h"
#include "lib/unwind/image/perf_map.h"
#include "lib/unwind/space/memos.h"
#include "lib/unwind/unwind.h"

/* What a mapping has got by and by. */
struct space_mapping {
	struct image *image; /* a reference */
	uint64_t bias;
	struct file_identity identity; /* of the file; inode 0: not known */
	bool tried;		       /* the file was asked for */
	bool refused;		       /* and not had */
	bool lost;		       /* it was had once and can't be any more */
};

struct unwind_space {
	struct unwind_cache *cache;
	const struct unwind_files *files;
	void *ctx;
	enum unwind_symbols symbols;
	uint64_t lines_skipped; /* addresses without lines because of a limit */
	struct perf_map perf_map;
	bool perf_map_asked; /* for its file, since the maps were set */
	struct maps maps;
	struct space_mapping *mappings; /* as many as maps */
	struct pc_info *pc_infos;	/* of pc_info.c; NULL: none yet */
	uint64_t generation;		/* of the cache, when these were found */
	struct memos memos;
};

/*
 * Frees what was found by rules that may be gone. Every public function calls
 * it first, after cache_begin().
 */
void space_begin(struct unwind_space *s);

/* The mapping of an address with its image (which may be NULL); NULL: none. */
struct space_mapping *space_mapping(struct unwind_space *s, uint64_t addr,
				    const struct map **ret_map);

/*
 * Reads the rows of the mapping's image, and its symbols unless the space wants
 * none. They are read with the first look-up, because the target may have ended
 * when names are asked for. Returns false if the file cannot be had any more.
 */
bool space_read_image(struct unwind_space *s, struct space_mapping *m, const struct map *map);

/*
 * Asks for the target's perf map, once for the same maps, so that it is open
 * when names are asked for.
 */
void space_open_perf_map(struct unwind_space *s);

/*
 * The name of code that the program made itself, at an address without an ELF
 * file; as perf_map_find.
 */
bool space_find_jit_symbol(struct unwind_space *s, uint64_t addr, const char **ret_name,
			   uint64_t *ret_offset);

/* Where the file of a mapping comes from. */
struct file_source space_source(const struct unwind_space *s, const struct map *map);

#endif
