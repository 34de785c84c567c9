/*
 * Parser of /proc/PID/maps. Checks all lines and keeps the executable mappings. Of some it keeps
 * the next mapping of a file above, too: a program can replace its text by a copy in other memory,
 * and the rest of its file tells what is in that memory.
 *
 * The names are chosen by the target: they are only compared and passed on.
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
	const char *path; /* owned by the struct maps; "" for none */
	uint32_t above;	  /* for maps_above() */
	bool exec;	  /* true in struct maps.v */
};

struct maps {
	struct map *v; /* sorted by address, without overlap */
	size_t n;
	struct map *files; /* what maps_above() returns */
	size_t n_files;
	char *strings;
};

/*
 * Bytes: how much further apart two segments of a file may be in memory than in the file. Linkers
 * align segments to up to 2 MiB, and there are few between text and data.
 */
#define MAPS_SPREAD_MAX (16u << 20)

/*
 * Parses text of size bytes. In paths, "\012" becomes a newline again, and
 * " (deleted)" at the end is removed. Empty text is valid: the process is exiting.
 * Returns 0; -EINVAL if a line is malformed, the addresses do not ascend, or the last
 * line has no newline; -E2BIG above max_lines; or -ENOMEM.
 */
must_check int maps_parse(struct maps *m, const char *text, size_t size, size_t max_lines);
void maps_fini(struct maps *m);

/* Returns the mapping that covers addr, or NULL. Owned by m. */
const struct map *maps_find(const struct maps *m, uint64_t addr);

/*
 * Returns the mapping of a file above map, one of m->v, by which the text of that file may have
 * been at map: the next readable mapping of a file that is not executable. If the file cannot have
 * been at map, returns the next one that is executable. The file cannot have been there if it is
 * map's own, if its beginning is mapped above, or if it is so far above that no segment of it
 * reaches map. Owned by m. NULL: there is none.
 */
const struct map *maps_above(const struct maps *m, const struct map *map);

#endif
