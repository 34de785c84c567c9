/*
 * Parser of /proc/PID/maps. Checks all lines and keeps the executable mappings.
 *
 * The names are chosen by the target: they are only compared and passed on.
 *
 * Source: proc_pid_maps(5); Linux, fs/proc/task_mmu.c.
 */
#ifndef LIB_UNWIND_SPACE_MAPS_H
#define LIB_UNWIND_SPACE_MAPS_H

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
};

struct maps {
	struct map *v; /* sorted by address, without overlap */
	size_t n;
	char *strings;
};

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

#endif
