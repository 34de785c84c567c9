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
#include "lib/unwind/walk/memo.h"
#include "lib/unwind/unwind.h"

/*
 * What is known of an address. Stacks of a target go through the same few
 * hundred addresses again and again, so they are kept, direct-mapped.
 */
struct place {
	uint64_t addr;
	const struct rule *rule; /* never NULL; of rows */
	const struct rows *rows; /* around addr; NULL where image is */
	struct image *image;	 /* NULL: no file, or none that can be read */
	uint64_t bias;		 /* address in memory less address in the file */
};

/* 16 KB a space: small beside what a target costs otherwise. */
#define SPACE_PLACES 512

/* What a mapping has got by and by. */
struct space_mapping {
	struct image *image; /* a reference */
	uint64_t bias;
	struct file_identity known; /* of the file; inode 0: not known */
	bool tried;		    /* the file was asked for */
	bool refused;		    /* and not had */
	bool lost;		    /* it was had once and can't be any more */
};

struct unwind_space {
	struct unwind_cache *cache;
	const struct unwind_files *files;
	void *ctx;
	enum unwind_symbols symbols;
	uint64_t lines_cut; /* addresses without lines because of a limit */
	struct perf_map perf_map;
	bool perf_map_asked; /* for its file, since the maps were set */
	struct maps maps;
	struct space_mapping *mappings; /* as many as maps */
	struct place *places;		/* NULL until the first look-up */
	uint64_t generation;		/* of the cache, that places belong to */
	struct memos memos;
};

/* Forgets places whose rules may be gone. Call at the start of each call. */
void space_begin(struct unwind_space *s);

/* What is known of addr; opens its image and compiles its rows if needed. */
const struct place *space_place(struct unwind_space *s, uint64_t addr);

/* True if p's address lies in no executable mapping. */
bool space_unmapped(const struct place *p);

/* The mapping of an address with its image (which may be NULL); NULL: none. */
struct space_mapping *space_mapping(struct unwind_space *s, uint64_t addr,
				    const struct map **ret_map);

/*
 * The name of code that the program made itself, at an address without an ELF
 * file; as perf_map_find.
 */
bool space_find_made(struct unwind_space *s, uint64_t addr, const char **ret_name,
		     uint64_t *ret_offset);

/* Where the file of a mapping comes from. */
struct cache_source space_source(const struct unwind_space *s, const struct map *map);

#endif
