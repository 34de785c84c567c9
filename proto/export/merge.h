/*
 * What all chunks of an export say together, in the form from which each format
 * is written: processes, their threads, one trie of stacks, and each thread's
 * bars. A bar is a stack that a thread had for a time.
 *
 * Chunks come one by one, in any order, and are released by the caller after
 * merge_add. Of each sample a bar of 32 bytes is kept, or, for formats that
 * know no order of time (ordered is false), only a sum for each thread, stack
 * and state. merge_finish sorts and filters; the lists are valid after it.
 *
 * A chunk that comes a second time (same profiler_id and chunk_id) is ignored.
 * Bars of one thread that overlap, which no chunk of ours has, are cut where
 * order counts; cut_ns says by how much.
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

/* A bit of a mask for each. */
#define MERGE_FILTERS_MAX 16

enum merge_states {
	MERGE_ALL,
	MERGE_RUNNING,
	MERGE_WAITING,
};

enum merge_filter_kind {
	MERGE_ANYTHING, /* one of the three matches */
	MERGE_FUNCTION,
	MERGE_MODULE, /* the whole path, or its last component */
	MERGE_THREAD, /* the name, the id, the label, or NAME (ID) */
};

/* A pattern of lib/base/glob.h, of which no slash ends a star. */
struct merge_filter {
	enum merge_filter_kind kind;
	const char *pattern;
};

/* Whether it looks at things of this kind and fits text. NULL: it does not. */
bool merge_filter_fits(const struct merge_filter *filter, enum merge_filter_kind kind,
		       const char *text);

/*
 * A symbol as people write it, into out. False if it is none that is mangled.
 */
typedef bool merge_demangle(const char *raw, char *out, size_t size);

/* Longer names stay as they are. */
#define MERGE_NAME_SIZE 4096

struct merge_options {
	/*
	 * For functions of the platform "rust", whose names are raw in a chunk:
	 * the server demangles them. NULL: they stay raw.
	 */
	merge_demangle *demangle;
	/*
	 * Frames of one function (name, module) are one frame, without an
	 * address and a line. Else frames differ by address, too.
	 */
	bool by_function;
	bool is_ordered;
	/*
	 * Keep members of payloads that the structs lack (merge_process.rest).
	 */
	bool keep_rest;

	enum merge_states states;
	/* A bar stays if its stack or its thread matches every filter. */
	struct merge_filter filters[MERGE_FILTERS_MAX];
	size_t n_filters;
	/*
	 * Time of each side, counted from its first sample: bars outside are
	 * left out, others are cut. is_cut: they are given.
	 */
	bool is_cut;
	uint64_t from_ns, until_ns;
	/* Of hash tables: what processes are called is theirs to choose. */
	uint64_t hash_seed;
};

struct merge_frame {
	/*
	 * For a person: the function, demangled, or "[FILE]" of the module. Not
	 * NULL.
	 */
	const char *name;
	const char *function; /* as in the chunk; NULL: not known */
	const char *package;  /* NULL: not known, as the next */
	const char *file;
	uint64_t addr; /* 0: not known */
	uint32_t line; /* 0: not known */
	uint32_t process;
	uint32_t matches; /* a bit for each filter */
	bool in_app;
};

struct merge_bar {
	uint64_t start_ns; /* Unix time; 0 in a sum */
	uint64_t lasts_ns;
	uint32_t node; /* never the empty stack */
	uint32_t thread;
	uint32_t samples; /* a sum counts up to UINT32_MAX */
	bool is_waiting;
};

struct merge_thread {
	uint32_t process;
	const char *id;
	const char *name; /* of its last chunk; "": not known */
	/*
	 * For a person, after merge_finish: the name, with the id where another
	 * thread of the export has the same name, the id where there is no
	 * name.
	 */
	const char *label;
	uint64_t name_ns; /* when the chunk of the name began */
	uint32_t matches;
	/* Its part of merge.bars, after merge_finish. */
	size_t first_bar, n_bars;
};

struct merge_process {
	const char *profiler_id;
	/* The id of its one thread that is called "main", else NULL. */
	const char *pid;
	/* By address after merge_finish; strings are merge.text's. */
	struct import_image *images;
	size_t n_images, cap_images;
	json_t *rest; /* see keep_rest; NULL without */
	/* From its first sample to its last; 0 without any. */
	uint64_t start_ns, end_ns;
	uint32_t side; /* see struct merge */
};

struct merge {
	struct merge_options options;
	/*
	 * Set by the caller before merge_add: the profile that the chunk
	 * belongs to. Sides share frames and nodes. A profiler_id on two sides
	 * is two processes. 0 where there is one profile only.
	 */
	uint32_t side;
	struct text text;

	struct merge_process *processes;
	size_t n_processes, cap_processes;
	struct merge_thread *threads; /* by process */
	size_t n_threads, cap_threads;
	struct merge_frame *frames;
	size_t n_frames, cap_frames;
	/* Parents stand before their children. */
	struct profile_node *nodes;
	uint32_t *node_matches; /* by node: of it and its parents */
	size_t n_nodes, cap_nodes, cap_matches;
	/* By thread; in a thread by time, or in the order of addition. */
	struct merge_bar *bars;
	size_t n_bars, cap_bars;

	/* The first sample and the last end of all chunks; 0 without any. */
	uint64_t start_ns, end_ns;
	uint64_t cut_ns;
	/* No chunk, or some chunk, said whether threads ran or waited. */
	bool has_states, lacks_states;

	struct table by_process, by_thread, by_frame, by_node, by_sum, by_chunk, by_image;
};

void merge_init(struct merge *m, const struct merge_options *options);
/* Takes NULL and zeros. */
void merge_fini(struct merge *m);

/* Returns 0 or -ENOMEM, after which only merge_fini may follow. */
must_check int merge_add(struct merge *m, const struct import_chunk *c);

/* Once, after the last chunk. Returns 0 or -ENOMEM. */
must_check int merge_finish(struct merge *m);

/* From the first sample of a side to its last; both are 0 without any. */
void merge_side_time(const struct merge *m, uint32_t side, uint64_t *ret_start_ns,
		     uint64_t *ret_end_ns);

/*
 * The frames of a stack, root first, into ret, which has room for
 * IMPORT_STACK_FRAMES_MAX nodes. Returns how many there are.
 */
size_t merge_path(const struct merge *m, uint32_t node, uint32_t *ret_nodes);

/*
 * The index of the image of the frame's process that its address lies in, or
 * PROFILE_NONE.
 */
uint32_t merge_find_image(const struct merge *m, const struct merge_frame *frame);

/* The part of a path behind the last slash; the path if that is empty. */
const char *merge_base(const char *path);

#endif
