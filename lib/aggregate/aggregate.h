/*
 * The aggregate of one target: takes ticks and unwound stacks, and makes a
 * profile (proto/profile.h) of them each time that a chunk is closed. It also
 * sums up the whole session by function, for the table that a user reads.
 *
 * unwind has one for each session and each recording: it calls a function here
 * for every record of capture, closes the chunk when aggregate_tick() says so,
 * and calls aggregate_next() after it has sent the profile.
 *
 * How samples stand for time. Readers of a chunk measure in two ways: some let
 * each sample last until the next one of its thread; others count samples, all
 * but the last one of each thread. Both get the same shares, because:
 * - a running thread has a sample at each tick, even if its stack stays the same;
 * - a wait has two samples, its first and its last one;
 * - a thread that exits leaves a copy of its stack at that tick;
 * - from a missed tick on the thread has an empty stack, so that no time is
 *   invented;
 * - a chunk begins with its threads' current stacks, and ends with a copy of
 *   them at the next chunk's first timestamp, so that no time is lost between
 *   two chunks.
 *
 * If no tick came for more than 5 s (the daemon was stopped, or the machine
 * slept), it is unknown what the threads did: the chunk ends at the last tick
 * before the gap, and the next one begins at the first tick after it.
 * lib/aggregate/period.h has these rules. They also keep every chunk shorter
 * than the 66 s that the server accepts.
 *
 * Times are monotonic times of ticks in ns (record.time_ns). The calls for one
 * thread come in the order of time; a time before the thread's last record, or
 * before the open chunk, is moved forward to it. No record may be added between
 * aggregate_close() and aggregate_next().
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
	size_t chunk_bytes; /* a chunk is due when its payload has about this size */
	/* Unix time minus monotonic time, fixed for the session. */
	uint64_t wall_offset_us;
	const char *main_path;	/* the executable, as the maps name it; may be "" */
	const char *main_argv0; /* argv[0] of the process; may be "" */
	uint64_t hash_seed;
	bool demangle; /* C++ and Rust names; false: names as in the symbol table */
	bool inlined;  /* inlined functions are frames of their own */
	/* Functions without a symbol are named by where they start. */
	bool name_by_start;
	/*
	 * All frames of a function are one frame of the chunk, with an address
	 * that is made of the function's start (lib/aggregate/lookup.h). Times by
	 * function stay the same.
	 */
	bool by_function;
	/*
	 * Patterns of files that belong to the application, and that do not
	 * (lib/aggregate/in_app.h); NULL: none. The caller keeps the strings, and
	 * keeps them valid as long as the aggregate.
	 */
	const char *in_app_include, *in_app_exclude;
};

/*
 * Creates an aggregate with an open chunk. Copies options; space must outlive
 * the aggregate or its next aggregate_exec(). Returns 0, -ENOMEM, or -EINVAL if
 * chunk_us is 0 or above 60 s.
 */
must_check int aggregate_new(const struct aggregate_options *options, struct unwind_space *space,
			     struct aggregate **ret);
void aggregate_free(struct aggregate *a);

/*
 * Creates a second aggregate for the threads of from, with chunks of its own.
 * Its first chunk begins at the newest tick that from has, with the stacks that
 * the threads have there. From then on the caller adds each record to both.
 * options are those of aggregate_new(), with the wall_offset_us of from. Returns
 * 0, -ENOMEM or -EINVAL.
 */
must_check int aggregate_new_beside(const struct aggregate *from,
				    const struct aggregate_options *options,
				    struct aggregate **ret);

/*
 * The functions that take a record of a thread return 0, or -ENOMEM: the record
 * is lost. A thread without a record so far is added without a name.
 *
 * aggregate_thread() takes the thread's name, as the kernel has it.
 */
must_check int aggregate_thread(struct aggregate *a, uint32_t tid, bool is_main, const char *comm,
				size_t comm_size);

/*
 * Sets the id that profiles show in place of the tid, from the open chunk on; 0:
 * the tid. The caller keeps ids of one chunk different.
 */
must_check int aggregate_thread_id(struct aggregate *a, uint32_t tid, uint64_t id);

/*
 * From this tick on the thread has this stack. running: the thread was on a
 * processor, neither blocked nor waiting for one.
 */
must_check int aggregate_sample(struct aggregate *a, uint32_t tid, uint64_t time_ns,
				const struct unwind_stack *stack, bool running);

/* From this tick on the thread waits for a processor, with the stack that it has. */
must_check int aggregate_waiting(struct aggregate *a, uint32_t tid, uint64_t time_ns);

/* From this tick on the thread's stack is unknown. */
must_check int aggregate_missed(struct aggregate *a, uint32_t tid, uint64_t time_ns);

/* The thread has exited before this tick. */
must_check int aggregate_exit(struct aggregate *a, uint32_t tid, uint64_t time_ns);

/* All threads have exited before this tick (exec, a new capture, the end). */
must_check int aggregate_exit_all(struct aggregate *a, uint64_t time_ns);

/*
 * Adds a tick (RECORD_TICK). A thread without a record since the last tick goes on
 * as before. settled_ns is the settled tick. elapsed_ticks is record_tick.due: the
 * number of ticks since the last call, this one included (0 counts as 1); a running
 * thread gets a sample at each of them. Returns true if the chunk ought to be closed,
 * because it has reached its length in time or in bytes.
 */
must_check bool aggregate_tick(struct aggregate *a, uint64_t time_ns, uint64_t settled_ns,
			       uint64_t elapsed_ticks);

/*
 * Closes the chunk at end_ns, the settled tick at which the next chunk begins
 * (period_end() says when another time is taken). *ret is the profile, without
 * ids, platform, release, environment and SDK, which the caller sets. The
 * profile belongs to the aggregate and is valid until aggregate_next(). A
 * profile without samples is possible: nothing happened.
 *
 * Names and images are looked up here, in the present maps of the space. Returns
 * 0, or -ENOMEM: the chunk is lost, and aggregate_next() goes on.
 */
must_check int aggregate_close(struct aggregate *a, uint64_t end_ns, struct profile *ret);

/*
 * Opens the next chunk with the threads' stacks at the end of the last one, and
 * with the samples that are later than that end. Called after aggregate_close(),
 * whatever that returned. Returns 0, or -ENOMEM: the next chunk is open, but has
 * no thread's stack until the thread's next sample.
 */
must_check int aggregate_next(struct aggregate *a);

/*
 * The process has executed another program, which has another space. Called
 * after aggregate_exit_all() and the close of the old program's chunk. The
 * session's table goes on.
 */
void aggregate_exec(struct aggregate *a, struct unwind_space *space, const char *main_path,
		    const char *main_argv0);

/*
 * Writes the table of the hottest functions (at most max_rows, and one row for
 * all others) to out: CPU time of the function itself and with the functions
 * that it called, and time waiting, up to the last settled tick. C++ and Rust
 * names are demangled; control bytes are escaped. Returns 0, -ENOMEM or -EIO.
 */
must_check int aggregate_write_table(struct aggregate *a, size_t max_rows, FILE *out);

#endif
