/*
 * The state behind lib/aggregate/aggregate.h, for the files that share it:
 * aggregate.c takes records, close.c turns a chunk into a profile and opens
 * the next. Nobody else includes this.
 */
#ifndef LIB_AGGREGATE_OPEN_CHUNK_H
#define LIB_AGGREGATE_OPEN_CHUNK_H

#include "lib/aggregate/aggregate.h"
#include "lib/aggregate/expand.h"
#include "lib/aggregate/fold.h"
#include "lib/aggregate/functions.h"
#include "lib/aggregate/names.h"
#include "lib/aggregate/span.h"
#include "lib/aggregate/stacks.h"
#include "lib/aggregate/lookup.h"
#include "lib/aggregate/threads.h"

struct aggregate {
	struct aggregate_options options;
	char main_path[NAME_SIZE];
	char main_argv0[NAME_SIZE];
	struct unwind_space *space;

	struct span span;
	struct threads threads;
	struct functions functions;

	/* The open chunk. */
	struct stacks stacks;
	struct profile_sample *samples; /* as they came; by time once closed */
	size_t n_samples, cap_samples;
	size_t sample_bytes;	       /* that they take in a payload, about */
	size_t open_bytes, open_nodes; /* what it started with */

	/* The closed chunk, until aggregate_next. */
	bool closed;
	uint64_t next_ns;
	struct lookup lookup;
	struct expand expand;
	struct fold fold;
	struct profile_sample *ahead; /* samples of the next chunk */
	size_t n_ahead;
	struct profile_thread *profile_threads;
	size_t n_profile_threads;
};

/* A tick's time as samples have it. */
static inline uint64_t open_chunk_unix_us(const struct aggregate *a, uint64_t time_ns)
{
	return a->options.wall_offset_us + time_ns / NS_PER_US;
}

/*
 * Adds a sample of the thread; is_waiting as in struct profile_sample, and
 * false for an empty stack. One state a time: a second one at the same time
 * takes the place of the first. An empty stack in front of any other says
 * nothing. 0 or -ENOMEM.
 */
must_check int open_chunk_emit(struct aggregate *a, struct thread *t, uint64_t time_us,
			       uint32_t node, bool is_waiting);

/*
 * Adds the samples that the thread's present state needs before time_ns, where
 * the state ends: of a running thread one at each tick, of a waiting one the
 * last of its wait. 0 or -ENOMEM.
 */
must_check int open_chunk_end_run(struct aggregate *a, struct thread *t, uint64_t time_ns);

/* What the chunk takes in a payload if it were closed now, about. */
size_t open_chunk_bytes(const struct aggregate *a);

/*
 * Everybody's time up to time_ns goes into the session's table; looks up the
 * names. 0 or -ENOMEM.
 */
must_check int open_chunk_count(struct aggregate *a, uint64_t time_ns);

#endif
