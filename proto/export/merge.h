/*
 * The merge of all chunks of an export, in the form from which each format is written:
 * processes, their threads, one trie of stacks, and the bars of each thread. A bar is a stack
 * that a thread had for a time.
 *
 * Use: merge_init(), merge_add() for each chunk in any order, merge_finish(). The lists are
 * valid after merge_finish(). merge_add() keeps no pointer to the chunk.
 *
 * Memory: a bar of 32 bytes for each sample if is_ordered is set; else only a sum for each
 * thread, stack and state.
 *
 * A chunk that is added a second time (same profiler_id and chunk_id) is ignored. If is_ordered
 * is set, and bars of one thread overlap, the later bar is cut so that it begins at the end of
 * the earlier one; overlap_ns is the sum of what was cut off. Chunks of sentry-profd have no
 * overlaps.
 */
#ifndef PROTO_EXPORT_MERGE_H
#define PROTO_EXPORT_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "proto/import/chunk.h"
#include "proto/profile.h"

/* Each filter is a bit in a 32-bit mask. */
#define MERGE_FILTERS_MAX 16

enum merge_states {
	MERGE_ALL,
	MERGE_RUNNING,
	MERGE_READY,
	MERGE_WAITING,
};

enum merge_filter_kind {
	MERGE_ANYTHING, /* any of the kinds below */
	MERGE_FUNCTION,
	MERGE_MODULE, /* matches the path or its last component */
	MERGE_THREAD, /* matches the name, the id, the label, or "NAME (ID)" */
};

/* pattern is one of lib/base/glob.h; '*' matches '/', too. */
struct merge_filter {
	enum merge_filter_kind kind;
	const char *pattern;
};

/* Returns whether the filter is for this kind and matches text. False if text is NULL. */
bool merge_filter_fits(const struct merge_filter *filter, enum merge_filter_kind kind,
		       const char *text);

/* Writes the demangled form of a symbol to out. Returns false if it is not mangled. */
typedef bool merge_demangle(const char *raw, char *out, size_t size);

/* Room for a demangled name. Names that are longer stay mangled. */
#define MERGE_NAME_SIZE 4096

struct merge_options {
	/*
	 * For chunks of the platform "rust": their names are mangled, since the server
	 * demangles them. NULL: they stay mangled.
	 */
	merge_demangle *demangle;
	/*
	 * "By function": all frames of a function (name and module) become one frame,
	 * without address and line. Else, "by address", frames differ by address, too.
	 */
	bool by_function;
	bool is_ordered; /* keep each bar with its time, else only sums */
	/* Keep members of payloads that the structs lack (merge_process.extra). */
	bool keep_extra;

	enum merge_states states;
	/* A bar is kept if its stack or its thread matches every filter. */
	struct merge_filter filters[MERGE_FILTERS_MAX];
	size_t n_filters;
	/*
	 * If has_range is set: the range of time to keep, counted from the first sample of each
	 * side. Bars outside the range are dropped, and bars across its ends are shortened.
	 */
	bool has_range;
	uint64_t from_ns, until_ns;
	/* For hash tables: the keys are names that targets choose. */
	uint64_t hash_seed;
};

struct merge_frame {
	/* To show: the demangled function, or "[FILE]" with the module. Never NULL. */
	const char *name;
	const char *function; /* as in the chunk; NULL: unknown */
	const char *package;  /* path of the module; NULL: unknown */
	const char *file;     /* source file; NULL: unknown */
	uint64_t addr;	      /* 0: unknown */
	uint32_t line;	      /* 0: unknown */
	uint32_t process;
	uint32_t matches; /* the filters that match: a bit each */
	bool in_app;
};

struct merge_bar {
	uint64_t start_ns; /* Unix time; 0 if it is a sum */
	uint64_t duration_ns;
	uint32_t node; /* never PROFILE_NONE */
	uint32_t thread;
	uint32_t samples; /* of a sum: saturates at UINT32_MAX */
	enum profile_state state;
};

struct merge_thread {
	uint32_t process;
	const char *id;
	const char *name; /* in its last chunk; "": unknown */
	/*
	 * To show, after merge_finish(): the name, or the id without a name; with the id added
	 * if another thread of the export has the same name.
	 */
	const char *label;
	uint64_t name_ns; /* start of the chunk that gave the name */
	uint32_t matches;
	/* Its range of merge.bars, after merge_finish(). */
	size_t first_bar, n_bars;
};

/*
 * A process, as long as it runs one program: after an exec its chunks have another release, made of
 * the name and the build of the new program, and are those of another merge_process.
 */
struct merge_process {
	const char *profiler_id;
	const char *release; /* NULL: unknown */
	/* The id of its thread that is called "main"; NULL: none. */
	const char *pid;
	/* Sorted by address after merge_finish(); strings belong to merge.text. */
	struct import_image *images;
	size_t n_images, cap_images;
	json_t *extra; /* merge_extra.h; NULL without keep_extra */
	/* Times of its first and its last sample; 0: no sample. */
	uint64_t start_ns, end_ns;
	uint32_t side; /* see struct merge */
};

struct merge {
	struct merge_options options;
	/*
	 * Set by the caller before merge_add(): the side that the chunk belongs to, if two
	 * profiles are compared (compare.h); else 0. Sides share frames and nodes. A
	 * profiler_id on two sides is two processes.
	 */
	uint32_t side;
	struct text text;

	struct merge_process *processes;
	size_t n_processes, cap_processes;
	struct merge_thread *threads;
	size_t n_threads, cap_threads;
	struct merge_frame *frames;
	size_t n_frames, cap_frames;
	/* Parents stand before their children. */
	struct profile_node *nodes;
	uint32_t *node_matches; /* by node: filters that match it or a parent */
	size_t n_nodes, cap_nodes, cap_matches;
	/* Sorted by thread; ordered ones in a thread by time. */
	struct merge_bar *bars;
	size_t n_bars, cap_bars;

	/* Start of the first and end of the last sample of all chunks; 0: no sample. */
	uint64_t start_ns, end_ns;
	uint64_t overlap_ns; /* what was cut off from overlapping bars */
	/* Some chunks tell running from waiting; some do not. */
	bool has_states, lacks_states;
	/* Of some chunks a waiting bar may be ready (import_chunk.hides_ready). */
	bool hides_ready;
	/* The profiler of some chunks was not to look for lines (import_chunk.lacks_lines). */
	bool lacks_lines;

	struct table by_process, by_thread, by_frame, by_node, by_sum, by_chunk, by_image;
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
 * Applies filters, sorts the lists and makes labels. Call it once, after the last chunk.
 * Returns 0 or -ENOMEM.
 */
must_check int merge_finish(struct merge *m);

/* Returns the times of the first and the last sample of a side; 0 and 0: no sample. */
void merge_side_time(const struct merge *m, uint32_t side, uint64_t *ret_start_ns,
		     uint64_t *ret_end_ns);

/*
 * Writes the nodes from the root to node to ret_nodes, which has room for
 * IMPORT_STACK_FRAMES_MAX. Returns how many there are.
 */
size_t merge_path(const struct merge *m, uint32_t node, uint32_t *ret_nodes);

/*
 * Returns the index of the image that the address of the frame lies in, in the images of its
 * process, or PROFILE_NONE. After merge_finish() only.
 */
uint32_t merge_find_image(const struct merge *m, const struct merge_frame *frame);

/* Returns the part of a path after the last slash, or the path if that part is empty. */
const char *merge_base(const char *path);

#endif
