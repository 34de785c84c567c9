/*
 * Records that lib/capture has made of a running process, in the order of the ring. They can be
 * played again, so that the unwinder is measured without capture. On an error all functions print
 * a line and exit.
 */
#ifndef TESTS_BENCH_RECORDED_H
#define TESTS_BENCH_RECORDED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/capture/sample.h"
#include "lib/unwind/unwind.h"

struct recorded {
	pid_t pid;
	struct unwind_cache *cache;
	struct unwind_space *space;
	uint8_t *bytes;
	size_t size;
	size_t room;
	/* The offset of each record in bytes. */
	size_t *at;
	size_t n;
	size_t samples;
	size_t whole;		    /* samples with all registers */
	uint64_t first_ns, last_ns; /* times of the first and last tick */
};

/*
 * Samples a process for this number of ticks, period_ns apart. Goes on until there are as many
 * samples with all registers, but at most for 100 times as long: the process may not get a
 * processor. The process stays traced until the caller exits, so that its files and memory can
 * still be read.
 */
void recorded_make(struct recorded *r, pid_t pid, uint64_t period_ns, uint64_t ticks);

/*
 * Initialises r without records: an empty cache, and the space of the process. recorded_make()
 * calls this function.
 */
void recorded_open(struct recorded *r, pid_t pid);
/* Frees cache and space. */
void recorded_close(struct recorded *r);

static inline const struct record *recorded_at(const struct recorded *r, size_t i)
{
	return (const void *)(r->bytes + r->at[i]);
}

/* Returns record number i if it is a sample, else NULL. */
const struct record_sample *recorded_sample(const struct recorded *r, size_t i);

/* Copies the first samples, at most max, into new memory that is never freed. Returns their number.
 */
size_t recorded_choose(const struct recorded *r, struct record_sample **ret, size_t max);

#endif
