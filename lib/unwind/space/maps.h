/*
 * Parses the text of /proc/PID/maps (proc_pid_maps(5); fs/proc/task_mmu.c).
 *
 * All lines are checked, the executable ones are kept. The names in it are the
 * target's: they are only compared and handed on.
 */
#ifndef LIB_UNWIND_SPACE_MAPS_H
#define LIB_UNWIND_SPACE_MAPS_H

#include <stdint.h>
#include <stddef.h>

#include "lib/base/util.h"

/* An executable mapping. */
struct map {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t device; /* as st_dev; 0 with inode 0: no file */
	uint64_t inode;
	const char *path; /* in the strings of its maps; "" for none */
};

struct maps {
	struct map *v; /* sorted by address, without overlap */
	size_t n;
	char *strings;
};

/*
 * In paths the kernel's "\012" is a newline again, and a " (deleted)" at the
 * end is taken off. Returns 0; -EINVAL if a line is not as the kernel writes
 * them, the addresses do not ascend, or the last line is cut off; -E2BIG above
 * max_lines; -ENOMEM. Text without a line is valid: a process that is ending.
 */
must_check int maps_parse(struct maps *m, const char *text, size_t size, size_t max_lines);
void maps_fini(struct maps *m);

/* The mapping that addr lies in, or NULL. */
const struct map *maps_find(const struct maps *m, uint64_t addr);

#endif
