/*
 * The open chunk of one target: takes ticks and unwound stacks, gives a
 * profile (proto/profile.h) when the chunk is closed.
 *
 * Stacks are a trie, frames are interned by address (a chunk that is closed may
 * have them by function). One reader measures time: each sample lasts until the
 * next one of its thread, an empty stack ends the bar. Another reader counts
 * samples, all but the last of each thread. So:
 * - a running thread has a sample at each tick, also where its stack stays the
 *   same: the shares of functions by count are those by time;
 * - a wait is kept as its first and its last sample;
 * - a thread that exits leaves a copy of its stack at that tick;
 * - from a missed tick on the thread has an empty stack: no time is invented;
 * - each chunk stands for itself: it starts with its threads' current stacks
 *   and ends with a copy of them at the next chunk's first timestamp, so that
 *   no time is lost between two chunks.
 *
 * Chunks join without a hole, except where ticks stood still (the daemon was
 * stopped, the machine slept) for more than 5 s: there a chunk ends at the last
 * tick before and the next starts at the first tick after; what the threads
 * did in between nobody knows. lib/aggregate/span.h has the rules, which also
 * keep every chunk below the server's 66 s, whatever ticks do.
 *
 * Beside the chunks it sums up the whole session by function, for the table
 * that a person reads.
 */
#ifndef LIB_AGGREGATE_AGGREGATE_H
#define LIB_AGGREGATE_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/util.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

struct aggregate;

struct aggregate_options {
	uint64_t chunk_us;  /* a chunk's length; at most 60 s */
	size_t chunk_bytes; /* a chunk's payload is cut near this */
	/* Unix time minus monotonic time, fixed for the session. */
	uint64_t wall_offset_us;
	const char *main_path;	/* the executable, as maps names it; may be "" */
	const char *main_argv0; /* what it was called by; may be "" */
	uint64_t hash_seed;
	/* C++ and Rust names as people write them, else as in the file. */
	bool demangle;
	/* Inlined functions, where they are known, are frames of their own. */
	bool inlined;
	/* Functions without a symbol are called by where they start. */
	bool name_starts;
	/*
	 * The frames of a function are one frame of the chunk, whose address is
	 * made of the function's start (lib/aggregate/lookup.h), not of where
	 * its instructions were. Times by function are the same.
	 */
	bool by_function;
	/*
	 * Patterns of files that are the application's, and that are not
	 * (lib/aggregate/in_app.h); NULL: none. They stay the caller's.
	 */
	const char *in_app_include, *in_app_exclude;
};

/*
 * options are copied, strings included; space must outlive the aggregate.
 * Returns 0, -ENOMEM, or -EINVAL if chunk_us is 0 or above 60 s.
 */
must_check int aggregate_new(const struct aggregate_options *options, struct unwind_space *space,
			     struct aggregate **ret);
void aggregate_free(struct aggregate *a);

/*
 * A second aggregate of from's threads, with chunks of its own: the first one
 * starts at the newest tick that from knows, with the threads' stacks of then.
 * Every record of the threads goes to both from now on. options as above, with
 * the wall_offset_us of from. Returns 0, -ENOMEM or -EINVAL.
 */
must_check int aggregate_new_beside(const struct aggregate *from,
				    const struct aggregate_options *options,
				    struct aggregate **ret);

/*
 * All times are monotonic nanoseconds of ticks (record.time_ns), all calls for
 * a thread in the order of time; one that is older than the thread's last, or
 * than the open chunk, counts as if it were of that time. Each returns 0 or
 * -ENOMEM: the record is lost. A tid that was not
 * announced is announced without a name. None may be called between
 * aggregate_close and aggregate_next.
 */
must_check int aggregate_thread(struct aggregate *a, uint32_t tid, bool is_main, const char *comm,
				size_t comm_size);

/*
 * What the thread is called in the open chunk and those to come, in place of
 * its tid (0); no two of a chunk may be called the same.
 */
must_check int aggregate_thread_id(struct aggregate *a, uint32_t tid, uint64_t id);

/*
 * The thread's stack from this tick on. running: it was on a processor,
 * neither blocked nor waiting for one.
 */
must_check int aggregate_sample(struct aggregate *a, uint32_t tid, uint64_t time_ns,
				const struct unwind_stack *stack, bool running);

/* From this tick on it waits for a processor; its stack is as it was. */
must_check int aggregate_waiting(struct aggregate *a, uint32_t tid, uint64_t time_ns);

/* From this tick on it is not known what the thread does. */
must_check int aggregate_missed(struct aggregate *a, uint32_t tid, uint64_t time_ns);

/* The thread is gone since this tick. */
must_check int aggregate_exit(struct aggregate *a, uint32_t tid, uint64_t time_ns);

/* All threads are gone since this tick (exec, a new capture, the end). */
must_check int aggregate_exit_all(struct aggregate *a, uint64_t time_ns);

/*
 * A tick: threads without a record since their last one go on as they were.
 * settled_ns is the time of the last tick for which all samples are in. due is
 * that of struct record_tick: the number of ticks since the last call. A thread
 * that runs over them gets a sample at each. *ret_due is set if the chunk ought
 * to be closed now: it has its length in time or bytes.
 */
must_check int aggregate_tick(struct aggregate *a, uint64_t time_ns, uint64_t settled_ns,
			      uint64_t due, bool *ret_due);

/*
 * Closes the chunk at end_ns (the settled tick that is the next chunk's
 * first; span.h says when another time is taken): *ret is the profile, ids,
 * platform, release and sdk still to be filled in by the caller. It belongs to
 * the aggregate and is valid until aggregate_next. Names and images are looked
 * up here, in the space's maps of now. *ret->n_samples may be 0: nothing
 * happened. Returns 0, or -ENOMEM: the chunk is lost; aggregate_next goes on.
 */
must_check int aggregate_close(struct aggregate *a, uint64_t end_ns, struct profile *ret);

/*
 * Opens the next chunk with the threads' stacks at the end of the last one.
 * Samples later than that which came before the close are in it. Returns 0, or
 * -ENOMEM: the next chunk is open, but knows no thread's stack until its next
 * sample.
 */
must_check int aggregate_next(struct aggregate *a);

/*
 * The process runs another program from here on, in another space: everybody
 * has exited and the chunk was cut. The session's table goes on.
 */
void aggregate_exec(struct aggregate *a, struct unwind_space *space, const char *main_path,
		    const char *main_argv0);

/*
 * Writes the table of the hottest functions (at most max_rows, and one row for
 * the others) to out: self and total time while running, and time waiting, up
 * to the last settled tick. Control bytes in names are escaped, C++ and Rust
 * names are as people write them. Returns 0, -ENOMEM or -EIO.
 */
must_check int aggregate_write_table(struct aggregate *a, size_t max_rows, FILE *out);

#endif
