/*
 * Names of code that a target generates at run time (a JIT compiler), from the file
 * that the target writes for perf: /tmp/perf-PID.map, with lines "START SIZE NAME"
 * in hexadecimal.
 *
 * Targets append to the file while they run, so it stays open and only new lines
 * are read. If entries overlap, the later one counts: the code was moved. The
 * contents are written by the target and not trusted. Malformed lines are skipped.
 *
 * Source: Linux, tools/perf/Documentation/jit-interface.txt.
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
 * How often new lines are read until perf_map_reset_reads(). Each read merges all
 * entries, and a target could write one line for each look-up.
 */
#define PERF_MAP_READS_MAX 4
/* Bytes. Longer lines are skipped; names of generics reach a kilobyte. */
#define PERF_MAP_LINE_MAX 4096

struct perf_map_entry {
	uint64_t start;
	uint32_t size;
	uint32_t order; /* the number of its line: later lines count */
	uint32_t name;	/* offset in names */
};

struct perf_map {
	int fd; /* -1: no file */
	uint64_t device, inode;
	uint64_t read_to;	  /* bytes of the file that were read, whole lines */
	struct perf_map_entry *v; /* sorted by start, without overlap */
	size_t n, cap;
	char *names;
	size_t names_size, names_cap;
	uint32_t order;
	uint32_t reads; /* since perf_map_reset_reads() */
	/* Written by the cache (cache.h) only. */
	struct perf_map *next;
	uint64_t last_use;
};

void perf_map_init(struct perf_map *m);
void perf_map_fini(struct perf_map *m);

/*
 * Takes fd, which m owns from now on, as the file to read. If it is the file that
 * was open before, its entries stay; otherwise they are removed.
 */
void perf_map_open(struct perf_map *m, int fd);

/* Returns the memory in use, in bytes. */
size_t perf_map_bytes(const struct perf_map *m);
/* Frees the memory in use. The next perf_map_update() reads the whole file again. */
void perf_map_drop(struct perf_map *m);

/* Allows PERF_MAP_READS_MAX further reads. */
void perf_map_reset_reads(struct perf_map *m);

/*
 * Reads the lines that were appended; the whole file, if it became shorter. A last line without
 * a newline is left for the next update. After PERF_MAP_READS_MAX reads, or without a file,
 * does nothing. Returns 0, or -ENOMEM: then the entries of earlier calls stay.
 */
must_check int perf_map_update(struct perf_map *m);

/*
 * The entry that covers addr. *ret_name is valid until m changes. Returns false if none
 * does.
 */
bool perf_map_find(const struct perf_map *m, uint64_t addr, const char **ret_name,
		   uint64_t *ret_offset);

#endif
