/*
 * The open chunk of one target: the target's threads, and the stacks and samples that were added
 * since the chunk began. lib/aggregate/aggregate.h defines chunk, tick, payload, running, ready and
 * waiting.
 *
 * lib/aggregate/aggregate.c changes the open chunk at every record of a thread.
 * lib/aggregate/cut.c ends the chunk and begins the next one in the same struct.
 *
 * Times in ns are those of ticks, CLOCK_MONOTONIC. Times in us are Unix times, as samples have
 * them. A sample with is_for_files (struct profile_sample) is only in payloads for files: the
 * server does not get it. Functions that allocate return 0 or -ENOMEM.
 */
#ifndef LIB_AGGREGATE_OPEN_CHUNK_H
#define LIB_AGGREGATE_OPEN_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/aggregate/names.h"
#include "lib/aggregate/stacks.h"
#include "lib/aggregate/window.h"
#include "lib/base/table.h"
#include "lib/base/util.h"
#include "proto/profile.h"

/*
 * A stack of the open chunk. depth and stack_id are valid unless node is PROFILE_NONE. They show
 * aggregate.c which frames the thread's next stack shares with this one (unwind_stack.shared_n).
 */
struct seen_stack {
	uint32_t node;	   /* index in stacks.nodes; PROFILE_NONE: no stack */
	size_t depth;	   /* number of frames */
	uint64_t stack_id; /* unwind_stack.id */
};

struct thread {
	uint32_t tid;
	uint64_t id; /* shown in the profile in place of tid; 0: tid is shown */
	char name[THREAD_NAME_SIZE];

	/* The thread's present state. */
	struct seen_stack stack; /* node PROFILE_NONE: unknown, or the thread has exited */
	enum profile_state state;
	uint64_t since_ns; /* open_chunk_charge() has counted the thread's time up to here */
	uint64_t seen_ns;  /* time of the last record that confirmed the stack */

	/* The stack of the last sample in which the thread was running; node PROFILE_NONE: none. */
	struct seen_stack ran;

	/* The thread's samples in the open chunk. */
	uint32_t last; /* index of the newest sample in samples; PROFILE_NONE: no sample */
	bool exited;
	uint64_t exit_us; /* valid if exited */
	/*
	 * Valid if exited: the tick before the exit, needed if a new thread gets the tid. The stack
	 * in the sample at the exit would then last until the new thread's first sample. So
	 * aggregate.c replaces this stack by an empty one, and adds a sample with the stack at
	 * before_us. 0: no sample is added, because the server has a sample of the ended thread at
	 * that tick already, or the thread had no stack or no sample.
	 */
	uint64_t before_us;

	/* Set by cut_end(): stack and state with which the thread begins the next chunk. */
	uint32_t carry; /* node of the stack at the end of the chunk; PROFILE_NONE: no stack */
	enum profile_state carry_state;
	bool ahead; /* the thread has samples at or after the end of the chunk */
	/*
	 * The thread exits at the end of the chunk, or its stack is unknown from there on: the next
	 * chunk does not begin with a stack of the thread.
	 */
	bool has_ended;
};

struct open_chunk {
	uint64_t wall_offset_us; /* Unix time minus monotonic time */
	struct window window;

	struct thread *threads;
	size_t n_threads, cap_threads;
	struct table by_tid; /* tid to index in threads */

	struct stacks stacks;
	struct profile_sample *samples; /* in the order of records; by time after cut_end() */
	size_t n_samples, cap_samples;
	size_t sample_bytes; /* size of the samples in a payload, estimated */
	/* Values of open_chunk_bytes() and stacks.n_nodes at the beginning of the chunk. */
	size_t first_bytes, first_nodes;
};

/* Initialises an empty chunk of the length chunk_us. hash_seed: random. Does not allocate. */
void open_chunk_init(struct open_chunk *c, uint64_t chunk_us, uint64_t wall_offset_us,
		     uint64_t hash_seed);
/* Frees everything that c points to. */
void open_chunk_fini(struct open_chunk *c);

/* Converts the time of a tick to the time of a sample. */
static inline uint64_t open_chunk_unix_us(const struct open_chunk *c, uint64_t time_ns)
{
	return c->wall_offset_us + time_ns / NS_PER_US;
}

/*
 * Finds the thread with this tid, or adds a thread without a name and a stack. *ret is
 * valid until the next thread is added.
 */
must_check int open_chunk_thread(struct open_chunk *c, uint32_t tid, struct thread **ret);

/* Returns the thread with this tid, or NULL. */
struct thread *open_chunk_find(const struct open_chunk *c, uint32_t tid);

/*
 * Removes the threads that have exited, except those with samples at or after the end of the last
 * chunk (thread.ahead).
 */
must_check int open_chunk_drop_exited(struct open_chunk *c);

/*
 * Adds a sample of the thread at time_us, which may be before the thread's last sample. Needed when
 * a tid is used again (thread.before_us). Unlike open_chunk_emit() this function never changes an
 * existing sample, nor t->last.
 */
must_check int open_chunk_append(struct open_chunk *c, const struct thread *t, uint64_t time_us,
				 uint32_t node, enum profile_state state);

/*
 * Adds a sample of the thread and sets t->last. node is the stack; PROFILE_NONE: an empty stack,
 * whose state is PROFILE_RUNNING. Two cases add no sample:
 * - The thread's last sample is at time_us or later. Then that sample gets the new stack and state,
 *   because a thread has only one sample per timestamp. Its is_for_files becomes false.
 * - The stack is empty, and the thread has no sample in the chunk yet.
 */
must_check int open_chunk_emit(struct open_chunk *c, struct thread *t, uint64_t time_us,
			       uint32_t node, enum profile_state state);

/*
 * Adds the samples that the thread lacks when its present state or stack ends at time_ns:
 * - running: a sample at each tick after the thread's last sample and before time_ns;
 * - ready or waiting: a sample at the tick before time_ns or at t->seen_ns, whichever is later. If
 *   the thread has a sample at that time or later, no sample is added: the thread's last sample
 *   gets is_for_files = false: the server gets this one, too. Does nothing if t->seen_ns is
 *   time_ns or later.
 * Does nothing if the thread has no stack or no sample.
 */
must_check int open_chunk_end_run(struct open_chunk *c, struct thread *t, uint64_t time_ns);

/*
 * Adds the samples of a change from ready to waiting, or back, at time_ns. The thread keeps its
 * stack. The samples have is_for_files, because the server gets no states. state is the new state;
 * the caller sets t->state.
 */
must_check int open_chunk_change_state(struct open_chunk *c, struct thread *t, uint64_t time_ns,
				       enum profile_state state);

/*
 * Adds the time from t->since_ns to time_ns, without the part in a gap (window.h), to the time of
 * the thread's stack in its state (stacks_charge()). Adds nothing for a thread without a stack.
 * Sets t->since_ns to time_ns, if that is later.
 */
void open_chunk_charge(struct open_chunk *c, struct thread *t, uint64_t time_ns);

/* Estimates the payload's size in bytes if the chunk were closed now. */
size_t open_chunk_bytes(const struct open_chunk *c);

#endif
