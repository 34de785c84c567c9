/*
 * The aggregate of one target: collects the ticks and unwound stacks of a chunk, and makes a
 * profile (proto/profile.h) of them when the chunk is closed. It also adds the time that each
 * function took to a table that a user reads (lib/aggregate/functions.h).
 *
 * Terms:
 * - A tick is a numbered sampling period of capture. The time of a tick is when the period begins;
 *   all samples of the tick have this time.
 * - The settled tick is the last tick up to which all samples have come. It is before the newest
 *   tick while a thread takes long to stop for its sample.
 * - A chunk is the profile of one target for up to 60 s. The chunks of a target follow each other
 *   without a hole, except at a gap (see below).
 * - A payload is the chunk as JSON. A payload for files has more than Sentry's server accepts.
 * - A session is one run of the profiler on a target, from its start to its stop. A recording is a
 *   second profile of the same target that a user asked for.
 * - A thread is running (on a processor), ready (runnable without a processor) or waiting
 *   (blocked): enum profile_state.
 *
 * unwind has one aggregate for each session and one for each recording, and calls a function here
 * for every record of capture (lib/capture/sample.h). When aggregate_tick() returns true, unwind
 * calls aggregate_close(), sends the profile, and calls aggregate_next(). No record may be added
 * between aggregate_close() and aggregate_next().
 *
 * How samples represent time. Some readers of a chunk let each sample last until the next one of
 * its thread. Others, such as Sentry's flame graph, count the samples of each thread, without the
 * last one. Both get the same shares of running time, because:
 * - a running thread has a sample at each tick, even if its stack stays the same;
 * - a thread that exits has a copy of its stack at the tick of the exit;
 * - from a missed tick on the thread has an empty stack, so that no time is counted for a wrong
 *   stack;
 * - a chunk begins with the current stacks of its threads, and ends with a copy of them at the
 *   first timestamp of the next chunk, so that no time is lost between two chunks.
 * A waiting time has two samples, at its first and at its last tick, and so has a ready time. A
 * reader that counts samples finds at most these two, however long the time is. So such a reader
 * cannot measure waiting or ready time.
 *
 * A gap is a time of more than 5 s without a tick: the daemon was stopped, or the machine slept.
 * What the threads did meanwhile is unknown. So the chunk ends at the last tick before the gap, and
 * the next one begins at the first tick after the gap. window.h has the rules, which also keep
 * every chunk shorter than the 66 s that the server accepts.
 *
 * Times are those of ticks: CLOCK_MONOTONIC, in ns (record.time_ns). The caller adds the records of
 * a thread in the order of time. A time that is too early is moved: to the time of the thread's
 * last record, or to the beginning of the open chunk.
 *
 * The example makes a chunk for a file. One for the server also needs ids (profiler and chunk), and
 * profile_check() has to accept it.
 *
 * Example: writes the chunk of a thread that runs for a second, as a file has it.
 *
 *	#include "lib/aggregate/aggregate.h"
 *	#include "proto/chunk_v2.h"
 *
 *	int main(void)
 *	{
 *		const struct aggregate_options options = {
 *			.chunk_us = 60000000, .chunk_bytes = 1 << 20,
 *			.main_path = "", .main_argv0 = ""};
 *		const struct unwind_cache_options cache_options = {.max_bytes = 1 << 20};
 *		const struct unwind_files no_files = {0};
 *		static const struct unwind_stack stack = {
 *			.frames = {{.addr = 0x1000, .is_leaf = 1}, {.addr = 0x2000}}, .n = 2};
 *		struct unwind_cache *cache;
 *		struct unwind_space *space;
 *		struct aggregate *a;
 *		struct profile profile;
 *		uint64_t ns;
 *
 *		if (unwind_cache_new(&cache_options, &cache) < 0 ||
 *		    unwind_space_new(cache, &no_files, NULL, &space) < 0 ||
 *		    aggregate_new(&options, space, &a) < 0 ||
 *		    aggregate_thread(a, 1234, true, "worker", sizeof("worker")) < 0)
 *			return 1;
 *		for (ns = 0; ns < NS_PER_SEC; ns += 10 * NS_PER_MS)
 *			if (aggregate_sample(a, 1234, ns, &stack, PROFILE_RUNNING) < 0 ||
 *			    aggregate_tick(a, ns, ns, 1))
 *				return 1;
 *		if (aggregate_close(a, ns, &profile) < 0)
 *			return 1;
 *		profile.platform = "native";
 *		profile.release = "program@1";
 *		profile.environment = "production";
 *		profile.sdk_name = "example";
 *		profile.sdk_version = "1";
 *		return chunk_v2_write(&profile, CHUNK_V2_FILE, stdout) < 0;
 *	}
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
struct functions;

struct aggregate_options {
	uint64_t chunk_us;  /* a chunk's length, above 0 and at most 60 s */
	size_t chunk_bytes; /* a chunk is due when its payload has about this size */
	/* CLOCK_REALTIME minus CLOCK_MONOTONIC at the session's start; one value for all chunks. */
	uint64_t wall_offset_us;
	const char *main_path;	/* path of the executable, as in the maps; "": unknown; not NULL */
	const char *main_argv0; /* argv[0] of the process; "": unknown; not NULL */
	uint64_t hash_seed;	/* random, for hash tables whose keys the target can choose */
	bool demangle; /* show C++ and Rust names demangled; false: as in the symbol table */
	/* Inlined functions are frames of their own; false: only payloads for files have them. */
	bool inlined;
	/* Only payloads for files have source files and lines; false: all payloads have them. */
	bool lines_for_files;
	/* A function without a symbol gets a name made of its start address (lookup_update()). */
	bool name_by_start;
	/*
	 * All frames of a function become one frame of the chunk, with an address made of the
	 * function's start (lookup_update()). Reason: Sentry's page shows the frames of a function
	 * as one box only if they have the same address. No function's time changes.
	 */
	bool by_function;
	/*
	 * Patterns of files that belong to the application, and of files that do not
	 * (struct in_app_rules); NULL or "": none. The strings stay the caller's, and must be valid
	 * as long as the aggregate.
	 */
	const char *in_app_include, *in_app_exclude;
	/*
	 * The table to which the aggregate adds its times; NULL: none. Several aggregates may share
	 * it. The table stays the caller's, and must outlive the aggregate.
	 */
	struct functions *table;
};

/*
 * Creates an aggregate with an open chunk. Copies options, with the strings main_path and
 * main_argv0. space is the target's address space, in which frames are looked up. It must stay
 * valid until aggregate_free() or until aggregate_exec() sets another one. Returns 0, -ENOMEM, or
 * -EINVAL if chunk_us is 0 or above 60 s.
 */
must_check int aggregate_new(const struct aggregate_options *options, struct unwind_space *space,
			     struct aggregate **ret);
/* Frees the aggregate. a may be NULL. */
void aggregate_free(struct aggregate *a);

/*
 * Creates a second aggregate of the same target, for a recording. Its first chunk begins at the
 * newest tick of original, with the stacks that the threads have there. From then on the caller
 * adds each record to both aggregates.
 *
 * options are as in aggregate_new(), with two differences. wall_offset_us must be that of original.
 * main_path and main_argv0 must not be NULL, but are not used: the new aggregate takes these two
 * and the space from original. original must have an open chunk: do not call this function between
 * aggregate_close() and aggregate_next(). Returns 0, -ENOMEM, or -EINVAL as aggregate_new().
 */
must_check int aggregate_new_beside(const struct aggregate *original,
				    const struct aggregate_options *options,
				    struct aggregate **ret);

/*
 * The following functions are for the records of a thread (lib/capture/sample.h): for example
 * aggregate_exit() for RECORD_EXIT. If a record has another name than its function, the function's
 * comment says so. The functions return 0, or -ENOMEM: the record is lost.
 *
 * tid may be any number that tells the target's threads apart. The first record of a thread adds
 * the thread, without a name. "This tick" is the one that begins at time_ns.
 */

/*
 * Sets the thread's name from comm, the kernel's name of the thread: comm_size bytes, perhaps
 * without a NUL (names_thread()). is_main: the thread is the main thread. A thread that had exited
 * is alive again.
 */
must_check int aggregate_thread(struct aggregate *a, uint32_t tid, bool is_main, const char *comm,
				size_t comm_size);

/*
 * Sets the id that the open chunk and later ones show in place of the tid; 0: the tid. There is no
 * record for this. The caller ensures that no two threads of a chunk have the same id.
 */
must_check int aggregate_thread_id(struct aggregate *a, uint32_t tid, uint64_t id);

/*
 * Sets the stack and the state that the thread has from this tick on. The stack is copied. A thread
 * that had exited is alive again.
 */
must_check int aggregate_sample(struct aggregate *a, uint32_t tid, uint64_t time_ns,
				const struct unwind_stack *stack, enum profile_state state);

/*
 * Sets the state that the thread has from this tick on: for RECORD_READY and RECORD_WAITING. The
 * thread keeps its stack.
 */
must_check int aggregate_state(struct aggregate *a, uint32_t tid, uint64_t time_ns,
			       enum profile_state state);

/*
 * Sets the thread to running from this tick on. Call this function if the thread ran at this tick,
 * but no sample shows where:
 * - for RECORD_RUNNING;
 * - for a sample with SAMPLE_ASLEEP: the thread ran at the tick, but slept when it was sampled.
 *   First call aggregate_sample() with its stack and PROFILE_WAITING, at the same time_ns.
 * The stack is a guess: that of the thread's last running sample in the open chunk or, without such
 * a sample, the thread's present stack.
 */
must_check int aggregate_running(struct aggregate *a, uint32_t tid, uint64_t time_ns);

/* Sets the thread's stack to unknown from this tick on. */
must_check int aggregate_missed(struct aggregate *a, uint32_t tid, uint64_t time_ns);

/*
 * Adds the exit of the thread. The thread's stack lasts until this tick, at which the thread gets
 * its last sample. Ignores a thread that has exited already.
 */
must_check int aggregate_exit(struct aggregate *a, uint32_t tid, uint64_t time_ns);

/*
 * Calls aggregate_exit() for all threads: after an exec, after the end of capture, or at the end of
 * the session. After -ENOMEM some threads have not exited.
 */
must_check int aggregate_exit_all(struct aggregate *a, uint64_t time_ns);

/*
 * Adds a tick (RECORD_TICK). A thread without a record since the last tick keeps its stack and its
 * state. settled_ns is the time of the settled tick. elapsed_ticks is record_tick.elapsed_ticks:
 * the number of ticks since the last call, this one included (0 counts as 1). A running thread gets
 * a sample at each of them. Returns true if the chunk has reached its length in time or in bytes,
 * or if a gap has come: the caller calls aggregate_close() at settled_ns.
 */
must_check bool aggregate_tick(struct aggregate *a, uint64_t time_ns, uint64_t settled_ns,
			       uint64_t elapsed_ticks);

/*
 * Closes the chunk at end_ns, where the next chunk begins (window_end() says when another time is
 * used). After aggregate_tick() pass settled_ns; otherwise, for example at an exec, the time of the
 * newest record. *ret is the profile. The caller sets its ids, platform, release, environment and
 * SDK. The profile belongs to the aggregate and is valid until aggregate_next(). If no thread had a
 * stack, the profile has no samples.
 *
 * Looks up names and images in the present maps of the space. Returns 0, or -ENOMEM: the chunk is
 * lost. In both cases the caller calls aggregate_next().
 */
must_check int aggregate_close(struct aggregate *a, uint64_t end_ns, struct profile *ret);

/*
 * Opens the next chunk, with the stacks that the threads had at the end of the last chunk, and with
 * the samples at or after that end. Call it after aggregate_close(), also if that failed. Returns
 * 0, or -ENOMEM: the next chunk is open, but no thread has a stack until its next sample.
 */
must_check int aggregate_next(struct aggregate *a);

/*
 * Sets the program of the target: its address space, which must be valid as in aggregate_new(), and
 * copies of main_path and main_argv0. After an exec, first call aggregate_exit_all(),
 * aggregate_close() and aggregate_next(). With the present space the caller may also call this
 * function before aggregate_close(), to correct the two strings. In options.table the process
 * counts once in a program, also if it executes the program again.
 */
void aggregate_exec(struct aggregate *a, struct unwind_space *space, const char *main_path,
		    const char *main_argv0);

/*
 * Adds the times of the open chunk, up to the settled tick, to options.table. The times of closed
 * chunks are in the table already. The chunk's profile stays the same. Does nothing without a
 * table, or between aggregate_close() and aggregate_next(). Returns 0 or -ENOMEM.
 */
must_check int aggregate_update_table(struct aggregate *a);

#endif
