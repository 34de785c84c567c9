/*
 * Names of code that a program makes at run time, from the file that it writes
 * for perf: /tmp/perf-PID.map, lines of "START SIZE NAME" in hex (Linux,
 * tools/perf/Documentation/jit-interface.txt).
 *
 * Programs append to it while they run, so the file is kept open and only its
 * tail is read. Where entries overlap the later one counts: code has moved
 * there. What such a file says is the target's word; wrong lines are left out.
 */
#ifndef LIB_UNWIND_IMAGE_PERF_MAP_H
#define LIB_UNWIND_IMAGE_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* A large server in Java or JavaScript has 100,000 lines of 100 bytes. */
#define PERF_MAP_BYTES_MAX   (64u << 20)
#define PERF_MAP_ENTRIES_MAX (1u << 20)
/*
 * How often new lines are read until perf_map_reset_reads: each time all entries are
 * merged, and a target could write one line for each that is looked up.
 */
#define PERF_MAP_READS_MAX 4
/* The longest line that is looked at; names of generics reach a kilobyte. */
#define PERF_MAP_LINE_MAX 4096

struct perf_map_entry {
	uint64_t start;
	uint32_t size;
	uint32_t order; /* counts up: later lines count */
	uint32_t name;	/* offset in names */
};

struct perf_map {
	int fd; /* -1: none */
	uint64_t device, inode;
	uint64_t read_to;	  /* so many bytes of it, whole lines, are known */
	struct perf_map_entry *v; /* by start, without overlap */
	size_t n, cap;
	char *names;
	size_t names_size, names_cap;
	uint32_t order;
	uint32_t reads; /* since perf_map_reset_reads */
	/* Of who keeps several of them: cache.h. */
	struct perf_map *next;
	uint64_t last_use;
};

void perf_map_init(struct perf_map *m);
void perf_map_fini(struct perf_map *m);

/*
 * Reads this file from now on, which is m's. The same file again: it goes on;
 * another one: nothing of the old is kept.
 */
void perf_map_open(struct perf_map *m, int fd);

/* The bytes of memory that it takes, and giving them back: it is read anew. */
size_t perf_map_bytes(const struct perf_map *m);
void perf_map_drop(struct perf_map *m);

/* It may be read PERF_MAP_READS_MAX times from here on. */
void perf_map_reset_reads(struct perf_map *m);

/*
 * Reads what has been added; everything, if the file is shorter than it was. A
 * line without its end is left for the next time. Returns 0 or -ENOMEM, with
 * what was read until then.
 */
must_check int perf_map_update(struct perf_map *m);

/*
 * The entry that covers addr; *ret_name is valid until m changes. False if
 * there is none.
 */
bool perf_map_find(const struct perf_map *m, uint64_t addr, const char **ret_name,
		   uint64_t *ret_offset);

#endif
