/*
 * Parses /proc/PID/maps. Checks all lines, and keeps the executable mappings.
 *
 * A program can replace the mapping of its text by a copy in other memory, such as huge pages. Then
 * another mapping of the program's file, above the copy, shows whose text the copy is:
 *
 *     400000-600000 r-xp 00000000 00:00 0                  the copy
 *     600000-700000 r--p 00200000 fe:01 1234    /bin/app   found by maps_above()
 *
 * So the parser also keeps the mappings that maps_above() returns.
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
 * Returns a mapping of the file from whose text map, one of m->v, may have been copied (see the
 * example above). Owned by m. The candidates are readable mappings of files above map, at most two,
 * in this order:
 * 1. the lowest one that is not executable;
 * 2. the lowest one of all, if it is executable.
 * Returns the first candidate that
 * - is of another file than map,
 * - does not begin at offset 0 of its file, and
 * - begins at most its offset plus MAPS_SPREAD_MAX bytes above the start of map.
 * NULL: there is none.
 */
const struct map *maps_above(const struct maps *m, const struct map *map);

#endif
