/*
 * Perf maps: the names of code that a target generates at run time (a JIT compiler), read from
 * the file that the target writes for perf(1), /tmp/perf-PID.map. A line is "START SIZE NAME";
 * START and SIZE are hexadecimal. Each space has one perf map (space/space.h).
 *
 * Targets append to the file while they run, so the file stays open and only new lines
 * are read. HotSpot writes the whole file each time it is asked to. If two entries overlap, the
 * later line is kept: the code was moved. The target writes the contents, so they are not trusted.
 * Malformed lines are skipped.
 *
 * Source: Linux, tools/perf/Documentation/jit-interface.txt.
 */
#ifndef LIB_UNWIND_IMAGE_PERF_MAP_H
#define LIB_UNWIND_IMAGE_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * The most bytes of the file, and the most entries, that are read; the rest is ignored. A large
 * server in Java or JavaScript has 100,000 lines of 100 bytes.
 */
#define PERF_MAP_BYTES_MAX   (64u << 20)
#define PERF_MAP_ENTRIES_MAX (1u << 20)
/*
 * The most calls of perf_map_update() that read new lines, until perf_map_reset_reads(). A target
 * could write one line before each look-up, and each such call goes through all entries.
 */
#define PERF_MAP_READS_MAX 4
/* Bytes. Longer lines are skipped; names of generics reach a kilobyte. */
#define PERF_MAP_LINE_MAX 4096
/* The most bytes that are compared to find that the file was written anew: the last line or two. */
#define PERF_MAP_TAIL 128

struct perf_map_entry {
	uint64_t start; /* address in the target */
	uint32_t size;	/* bytes */
	uint32_t order; /* the number of its line; higher: later */
	uint32_t name;	/* offset in perf_map.names */
};

struct perf_map {
	int fd; /* -1: no file */
	uint64_t device, inode;
	uint64_t read_to;	  /* bytes of the file that were read: whole lines */
	char tail[PERF_MAP_TAIL]; /* the last bytes before read_to, at most PERF_MAP_TAIL */
	struct perf_map_entry *v; /* sorted by start, without overlap */
	size_t n, cap;
	char *names;
	size_t names_size, names_cap;
	uint32_t order; /* of the next entry */
	uint32_t reads; /* reads of new lines since perf_map_reset_reads() */
	/* Written by the cache (cache.h) only. */
	struct perf_map *next;
	uint64_t last_use;
};

/* Initialises a perf map without a file. Does not allocate. */
void perf_map_init(struct perf_map *m);
/* Closes the file and frees the entries. m is then as after perf_map_init(). */
void perf_map_fini(struct perf_map *m);

/*
 * Makes fd the file to read; m owns fd from now on. The entries stay if the file is the one that m
 * had before, otherwise they are removed. If fstat(2) fails, closes fd and keeps the former file.
 */
void perf_map_open(struct perf_map *m, int fd);

/* Returns the memory in use, in bytes. */
size_t perf_map_bytes(const struct perf_map *m);
/* Frees the memory in use. The next perf_map_update() reads the whole file again. */
void perf_map_drop(struct perf_map *m);

/* Allows PERF_MAP_READS_MAX further reads. */
void perf_map_reset_reads(struct perf_map *m);

/*
 * Reads the lines that were appended. If the file became shorter, or has other bytes where the last
 * update ended, it was written anew: removes all entries, and reads the whole file. A last line
 * without a newline is left for the next update. Does nothing if the file ends where the last
 * update ended, after PERF_MAP_READS_MAX reads, or without a file. Returns 0, also if the file
 * cannot be read; or -ENOMEM: new entries may be missing.
 */
must_check int perf_map_update(struct perf_map *m);

/*
 * Finds the entry that covers addr. *ret_name is valid until m changes; *ret_offset is addr minus
 * the entry's start. Returns false if no entry covers addr.
 */
bool perf_map_find(const struct perf_map *m, uint64_t addr, const char **ret_name,
		   uint64_t *ret_offset);

#endif
