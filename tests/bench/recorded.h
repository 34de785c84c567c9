/*
 * Records of a live process, as the ring gave them, to play again: what the
 * unwinder costs is measured without those who fill the ring.
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
	/* Where each record starts, in the order of the ring. */
	size_t *at;
	size_t n;
	size_t samples;
	size_t whole;		    /* of these, with all registers */
	uint64_t first_ns, last_ns; /* of ticks */
};

/*
 * Samples a process for ticks, by lib/capture; for more where in so many it did
 * not get a processor, until as many samples are whole. It stays traced until
 * the caller exits, so that its files and memory can still be read. What fails
 * ends the program.
 */
void recorded_make(struct recorded *r, pid_t pid, uint64_t period_ns, uint64_t ticks);

/*
 * Sets what r, all zero else, has of that process: its cache, in which nothing
 * is yet, and its space. recorded_make does so itself.
 */
void recorded_open(struct recorded *r, pid_t pid);
/* Frees these two. */
void recorded_close(struct recorded *r);

static inline const struct record *recorded_at(const struct recorded *r, size_t i)
{
	return (const void *)(r->bytes + r->at[i]);
}

/* The record as a sample, NULL if it is another one. */
const struct record_sample *recorded_sample(const struct recorded *r, size_t i);

/* Copies of the first samples, max at most, never freed; returns how many. */
size_t recorded_choose(const struct recorded *r, struct record_sample **ret, size_t max);

#endif
