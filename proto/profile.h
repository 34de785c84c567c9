/*
 * The model of a profile: what is described to the outside, in whatever format.
 *
 * Plain data. The arrays and strings belong to who built the profile and must
 * outlive the calls that get it. Strings are valid UTF-8 (profile_check finds
 * those that are not). Indices are into the arrays here. Addresses are the
 * target's.
 */
#ifndef PROTO_PROFILE_H
#define PROTO_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_NONE UINT32_MAX

/* A hex id of 16 random bytes, NUL-terminated: 32 lower-case digits. */
#define PROFILE_ID_SIZE 33
/* A UUID with dashes, NUL-terminated. */
#define PROFILE_DEBUG_ID_SIZE 37

struct profile_image {
	const char *code_file;
	char debug_id[PROFILE_DEBUG_ID_SIZE];
	uint64_t addr;	 /* where its first segment is in memory */
	uint64_t vmaddr; /* where the file wants it */
	uint64_t size;	 /* bytes */
};

struct profile_frame {
	uint64_t addr;	      /* see ingestion: leaf pc or raw return address */
	const char *function; /* raw symbol, or NULL */
	const char *package;  /* path of its image, or NULL */
	bool in_app;
};

/*
 * A stack is a path in a trie: a node is its innermost frame and its caller's
 * node. Parents stand before their children; roots have parent PROFILE_NONE.
 */
struct profile_node {
	uint32_t parent;
	uint32_t frame;
};

struct profile_sample {
	uint64_t time_us; /* Unix time */
	uint32_t tid;
	uint32_t node; /* PROFILE_NONE: the empty stack, idle */
};

struct profile_thread {
	uint32_t tid;
	const char *name; /* "" where it is not known */
};

struct profile {
	char profiler_id[PROFILE_ID_SIZE];
	char chunk_id[PROFILE_ID_SIZE];
	const char *platform;
	const char *release;
	const char *environment;
	const char *sdk_name;
	const char *sdk_version;

	const struct profile_image *images;
	size_t n_images;
	const struct profile_frame *frames;
	size_t n_frames;
	const struct profile_node *nodes;
	size_t n_nodes;
	const struct profile_sample *samples; /* by time, then tid */
	size_t n_samples;
	const struct profile_thread *threads;
	size_t n_threads;
};

/*
 * Why the server would not take a profile (or silently drop it), from the
 * rules in docs/FORMATS.md.
 */
enum profile_fault {
	PROFILE_OK,
	PROFILE_NO_SAMPLES,	   /* no thread has two samples with a stack */
	PROFILE_BAD_ID,		   /* profiler_id, chunk_id, a debug_id */
	PROFILE_MISSING_METADATA,  /* platform, release, environment, sdk */
	PROFILE_TOO_LONG,	   /* more than PROFILE_DURATION_MAX_US */
	PROFILE_BAD_INDEX,	   /* a node, frame or parent out of range, a parent
				      that does not stand before its child */
	PROFILE_BAD_TEXT,	   /* a string that is not UTF-8 */
	PROFILE_NO_ADDRESS,	   /* a frame without an address */
	PROFILE_BAD_ORDER,	   /* samples not by time */
	PROFILE_ROOT_WITHOUT_NAME, /* a stack's frame next to the root has no
				      function: the server would cut the stack */
	PROFILE_IMAGES_OVERLAP,
	PROFILE_UNKNOWN_THREAD,	   /* a sample's tid is not among the threads */
	PROFILE_FAULT_N
};

/* The server's limit: newest minus oldest timestamp of a chunk. */
#define PROFILE_DURATION_MAX_US (66u * 1000000u)

/* Checks every rule that can be checked before encoding. */
enum profile_fault profile_check(const struct profile *p);

/* A short name for stats, such as "duration_too_long". */
const char *profile_fault_name(enum profile_fault fault);

#endif
