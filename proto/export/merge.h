/*
 * Merges the chunks of one or more profiles into the form from which each format is written:
 * processes, their threads, one trie of stacks, and the bars of each thread. A bar is a stack
 * that a thread had for a time, in one state.
 *
 * Use: merge_init(), merge_add() for each chunk in any order, merge_finish(), and at the end
 * merge_fini(). The lists are valid after merge_finish(). merge_add() keeps no pointer to the
 * chunk.
 *
 * Memory: a bar of 32 bytes for each sample if is_ordered or has_range is set; else only one bar,
 * a sum, for each thread, stack and state. In addition the spans of each thread (covered.h).
 *
 * Time of a thread that is in several chunks counts once, as in the chunk that is added first: the
 * bars of the others are cut. So a chunk that is added twice counts once, and parts of a profile
 * add up to the whole. overlap_ns is the sum of what was cut off. The chunks of one run of
 * sentry-profd have no overlaps.
 */
#ifndef PROTO_EXPORT_MERGE_H
#define PROTO_EXPORT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/string_pool.h"
#include "lib/base/util.h"
#include "proto/export/covered.h"
#include "proto/import/chunk.h"
#include "proto/profile.h"

/* Each filter is a bit in a 32-bit mask. */
#define MERGE_FILTERS_MAX 16

/* The states of threads whose bars are kept. */
enum merge_states {
	MERGE_ALL,
	MERGE_RUNNING,
	MERGE_READY,
	MERGE_WAITING,
};

/* What the pattern of a filter is compared with. */
enum merge_filter_kind {
	MERGE_ANYTHING, /* all of those below */
	MERGE_FUNCTION, /* the name of a frame of the stack */
	MERGE_MODULE,	/* the path of a frame's module, or its last component */
	MERGE_THREAD,	/* the thread's name, id or label, or "NAME (ID)" */
};

/* pattern is one of lib/base/glob.h; '*' matches '/', too. */
struct merge_filter {
	enum merge_filter_kind kind;
	const char *pattern;
};

/*
 * Returns true if the filter is of this kind or MERGE_ANYTHING, and its pattern matches text.
 * Returns false if text is NULL.
 */
bool merge_filter_fits(const struct merge_filter *filter, enum merge_filter_kind kind,
		       const char *text);

/* Demangles raw into out. Returns false if raw is not mangled, or the result does not fit. */
typedef bool merge_demangle(const char *raw, char *out, size_t size);

/* Bytes of room for a demangled name, with the NUL. Names that are longer stay mangled. */
#define MERGE_NAME_SIZE 4096

struct merge_options {
	/*
	 * Demangles the names in chunks of the platform "rust", which are mangled because the
	 * server demangles them. NULL: they stay mangled.
	 */
	merge_demangle *demangle;
	/*
	 * Set ("by function"): all frames of a function (name, module and source file) become one
	 * frame, without address and line. Not set ("by address"): only frames that also have the
	 * same process, address and line become one.
	 */
	bool by_function;
	bool is_ordered; /* keep each bar with its time; otherwise only sums */
	/* Keep members of payloads for which there is no struct (merge_process.extra). */
	bool keep_extra;

	enum merge_states states;
	/* A bar is kept if every filter matches a frame of its stack, or its thread. */
	struct merge_filter filters[MERGE_FILTERS_MAX];
	size_t n_filters;
	/*
	 * If has_range is set: the range of time to keep, counted from the first sample of each
	 * side (merge.side). until_ns UINT64_MAX: no end. Bars outside the range are dropped, and
	 * bars across its ends are shortened.
	 */
	bool has_range;
	uint64_t from_ns, until_ns;
	uint64_t hash_seed; /* random, since targets choose the names that are hashed */
};

/* The strings of all structs below belong to merge.text: equal strings have equal addresses. */
struct merge_frame {
	/*
	 * To show, never NULL: the function's name, demangled if possible. If there is no function:
	 * "[FILE]" with the file name of the module, or "[unknown]".
	 */
	const char *name;
	const char *function; /* as in the chunk; NULL: unknown */
	const char *package;  /* path of the module; NULL: unknown */
	const char *file;     /* source file; NULL: unknown */
	uint64_t addr;	      /* 0: unknown, or by_function */
	uint32_t line;	      /* 0: unknown, or by_function */
	uint32_t process;     /* index; 0 with by_function */
	uint32_t matches;     /* bit i: filter i matches */
	bool in_app;
};

struct merge_bar {
	uint64_t start_ns; /* Unix time; 0 if it is a sum */
	uint64_t duration_ns;
	uint32_t node;	  /* index of the leaf's node; never PROFILE_NONE */
	uint32_t thread;  /* index */
	uint32_t samples; /* 1, or the number in a sum; 0: the start of the bar was cut off */
	enum profile_state state;
};

struct merge_thread {
	uint32_t process; /* index */
	const char *id;
	const char *name; /* in the last chunk that has one, without its " (ID)"; "": unknown */
	/*
	 * To show, after merge_finish(): the name, or the id if the name is unknown. The id is
	 * added if another thread of the merge has the same name; the profiler_id, too, if another
	 * thread has the same name and id; and the release, if that thread is of another program of
	 * the process.
	 */
	const char *label;
	uint64_t name_ns; /* start of the chunk that gave the name, Unix time */
	uint32_t matches; /* bit i: filter i matches */
	struct covered covered;
	/* The thread's range of merge.bars, after merge_finish(). */
	size_t first_bar, n_bars;
};

/*
 * A process, as long as it runs one program. After an exec its chunks have another release, made of
 * the name and the build of the new program: they belong to another merge_process.
 */
struct merge_process {
	const char *profiler_id;
	const char *release; /* NULL: unknown */
	/* After merge_finish(): the lowest id of its threads called "main"; NULL: there is none. */
	const char *main_thread;
	const char *pid;	     /* the same, if it is a thread id of the kernel; else NULL */
	struct import_image *images; /* sorted by address after merge_finish() */
	size_t n_images, cap_images;
	const char *main_program; /* import_chunk.main_program */
	const char *command_line; /* import_chunk.command_line: the first one that is known */
	json_t *extra;		  /* merge_extra.h; NULL without keep_extra */
	/* Unix times of its first and its last sample; 0: no sample. */
	uint64_t start_ns, end_ns;
	uint32_t side; /* merge.side when its chunks were added */
};

struct merge {
	struct merge_options options;
	/*
	 * Set by the caller before merge_add(): the side that the chunk belongs to, if two
	 * profiles are compared (compare.h); else 0. Sides share frames and nodes. A
	 * profiler_id on two sides is two processes.
	 */
	uint32_t side;
	struct string_pool text;

	struct merge_process *processes;
	size_t n_processes, cap_processes;
	struct merge_thread *threads;
	size_t n_threads, cap_threads;
	struct merge_frame *frames;
	size_t n_frames, cap_frames;
	struct profile_node *nodes; /* parents come before their children */
	uint32_t *node_matches;	    /* by node: the filters that match its frame or a caller's */
	size_t n_nodes, cap_nodes, cap_matches;
	/* Sorted by thread; if is_ordered is set, those of a thread by time. */
	struct merge_bar *bars;
	size_t n_bars, cap_bars;

	/* Start of the first and end of the last sample of all chunks, Unix time; 0: no sample. */
	uint64_t start_ns, end_ns;
	uint64_t overlap_ns; /* what was cut off from bars, since another chunk has that time */
	/* The samples of some chunk have states; those of some chunk have none. */
	bool has_states, lacks_states;
	/* In some chunk a waiting sample may be ready (import_chunk.hides_ready). */
	bool hides_ready;
	/* The profiler of some chunk did not look for lines (import_chunk.lacks_lines). */
	bool lacks_lines;
	bool joins_samples; /* import_chunk.joins_samples of some chunk */

	struct table by_process, by_thread, by_frame, by_node, by_sum, by_image;
};

/*
 * Initialises an empty merge. Copies *options; the patterns of the filters stay the caller's, and
 * must outlive m.
 */
void merge_init(struct merge *m, const struct merge_options *options);
/* Accepts NULL and a zero-initialised struct. */
void merge_fini(struct merge *m);

/* Adds a chunk. Returns 0 or -ENOMEM; after an error only merge_fini() may be called. */
must_check int merge_add(struct merge *m, const struct import_chunk *c);

/*
 * Drops bars by filters, states and range, sorts the lists and makes labels. Call it once, after
 * the last chunk. Returns 0 or -ENOMEM.
 */
must_check int merge_finish(struct merge *m);

/*
 * Returns how much of a duration of all_ns is in the range of m->options, and sets *ret_from_ns to
 * the begin of that part. Example: of 5 s, the range from 2 s to 10 s has 3 s, which begin at 2 s.
 * Without has_range the part is all_ns, and begins at 0.
 */
uint64_t merge_selected(const struct merge *m, uint64_t all_ns, uint64_t *ret_from_ns);

/* Returns the times of the first and the last sample of a side; 0 and 0: no sample. */
void merge_side_time(const struct merge *m, uint32_t side, uint64_t *ret_start_ns,
		     uint64_t *ret_end_ns);

/*
 * Writes the indices of the nodes from the root to node to ret_nodes, which has room for
 * IMPORT_STACK_FRAMES_MAX. Returns how many there are.
 */
size_t merge_path(const struct merge *m, uint32_t node, uint32_t *ret_nodes);

/*
 * Returns the index in merge_process.images of the image that has the frame's address, or
 * PROFILE_NONE. Call it after merge_finish(), in a merge by address.
 */
uint32_t merge_find_image(const struct merge *m, const struct merge_frame *frame);

/*
 * Returns the path of the process's main program: merge_process.main_program or, if that is
 * unknown, its module with the lowest address; NULL if there is no such module.
 */
const char *merge_main_program(const struct merge_process *p);

/* Returns the part of a path after the last slash, or the path if that part is empty. */
const char *merge_base(const char *path);

#endif
