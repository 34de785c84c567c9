/*
 * Parses /proc/PID/maps. Checks all lines, and keeps the executable mappings.
 *
 * A program can replace the mapping of its text by a copy in other memory, such as huge pages. What
 * is still mapped of its file, above the copy, then shows whose text the copy is. So the parser
 * also keeps such mappings: maps_above().
 *
 * The target chooses the paths: this module only compares them and passes them on.
 *
 * Source: proc_pid_maps(5); Linux, fs/proc/task_mmu.c.
 */
#ifndef LIB_UNWIND_SPACE_MAPS_H
#define LIB_UNWIND_SPACE_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* An executable mapping [start, end). */
struct map {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* in the file, bytes */
	uint64_t device; /* as st_dev; 0 with inode 0: no file */
	uint64_t inode;
	const char *path; /* owned by the struct maps; "": none */
	uint32_t above;	  /* private: for maps_above() */
	bool exec;	  /* the mapping is executable; always true in maps.v */
};

struct maps {
	struct map *v; /* sorted by address, without overlap */
	size_t n;
	struct map *files; /* what maps_above() returns */
	size_t n_files;
	char *strings; /* the paths */
};

/*
 * Two segments of a file may be this many bytes further apart in memory than in the file. Linkers
 * align segments to up to 2 MiB, and there are few segments between text and data.
 */
#define MAPS_SPREAD_MAX (16u << 20)

/*
 * Parses text of size bytes. In paths the kernel writes a newline as "\012", which becomes a
 * newline again; " (deleted)" at the end is removed. Empty text is valid: the process is exiting.
 * Returns 0; -EINVAL if a line is malformed, the addresses do not ascend, or the last
 * line has no newline; -E2BIG above max_lines; or -ENOMEM. *m is written on success only.
 */
must_check int maps_parse(struct maps *m, const char *text, size_t size, size_t max_lines);
/* Frees the arrays and leaves no mappings. Safe on a zeroed struct. */
void maps_fini(struct maps *m);

/* Returns the mapping that covers addr, or NULL. Owned by m. */
const struct map *maps_find(const struct maps *m, uint64_t addr);

/*
 * Returns a mapping of the file whose text may have been where map, one of m->v, is now. NULL:
 * none. Owned by m. Only readable mappings of files above map are considered. The result is
 * - the next one above that is not executable, if it is possible; otherwise
 * - the next one above, if it is executable and possible.
 * A mapping is possible if its file is not map's own, if it does not begin at the file's offset 0,
 * and if its distance from map is at most its offset plus MAPS_SPREAD_MAX.
 */
const struct map *maps_above(const struct maps *m, const struct map *map);

#endif
