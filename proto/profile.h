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

struct profile_image {
	const char *code_file;
	/*
	 * The build-id, or what stands for it in a file without one. Formats
	 * make of it what they need (proto/debug_meta.h: a debug_id).
	 */
	const uint8_t *id;
	size_t id_size;
	bool has_build_id; /* id is a build-id */
	uint64_t addr;	   /* where its first segment is in memory */
	uint64_t vmaddr;   /* where the file wants it */
	uint64_t size;	   /* bytes */
};

struct profile_frame {
	uint64_t addr;	      /* the leaf's pc, a caller's return address as it is */
	const char *function; /* its name, or NULL */
	const char *package;  /* path of its image, or NULL */
	bool in_app;
	const char *file; /* path of the source, or NULL */
	uint32_t line;	  /* in it; 0: not known */
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
	/*
	 * The thread is blocked or waits for a processor, until its next
	 * sample. Only payloads for files say so.
	 */
	bool is_waiting;
};

struct profile_thread {
	uint32_t tid;
	const char *name; /* "" where it is not known */
	uint64_t id;	  /* what the payload calls it; 0: by its tid */
};

/* What the process used: one point of each of three curves. */
struct profile_measure {
	uint64_t time_us;		 /* Unix time */
	uint64_t cpu_percent_millionths; /* 100 %: one processor */
	uint64_t memory_bytes;		 /* resident: RSS */
	uint64_t anonymous_bytes;	 /* of it, what no file holds: RssAnon */
};

struct profile {
	char profiler_id[PROFILE_ID_SIZE];
	char chunk_id[PROFILE_ID_SIZE];
	const char *platform;
	const char *release;
	const char *environment;
	const char *sdk_name;
	const char *sdk_version;

	const struct profile_image *images; /* by addr */
	size_t n_images;
	const struct profile_frame *frames;
	size_t n_frames;
	const struct profile_node *nodes;
	size_t n_nodes;
	const struct profile_sample *samples; /* by time, then tid */
	size_t n_samples;
	const struct profile_thread *threads; /* by tid */
	size_t n_threads;
	const struct profile_measure *measures; /* by time; may be none */
	size_t n_measures;
};

/*
 * Why the server would not take a profile (or silently drop it), from the
 * rules in docs/FORMATS.md.
 */
enum profile_fault {
	PROFILE_OK,
	PROFILE_NO_SAMPLES,	   /* no thread has two samples with a stack */
	PROFILE_BAD_ID,		   /* profiler_id, chunk_id, an image without id */
	PROFILE_MISSING_METADATA,  /* platform, release, environment, sdk */
	PROFILE_TOO_LONG,	   /* more than PROFILE_DURATION_MAX_US */
	PROFILE_BAD_INDEX,	   /* a node, frame or parent out of range, a parent
				      that does not stand before its child */
	PROFILE_BAD_TEXT,	   /* a string that is not UTF-8 */
	PROFILE_NO_ADDRESS,	   /* a frame without an address */
	PROFILE_BAD_ORDER,	   /* samples not by time and tid, a thread twice at a
				      time, threads not by tid */
	PROFILE_ROOT_WITHOUT_NAME, /* a stack's frame next to the root has no
				      function: the server would cut the stack
				    */
	PROFILE_IMAGES_OVERLAP,	   /* or are not by address */
	PROFILE_UNKNOWN_THREAD,	   /* a sample's tid is not among the threads */
	PROFILE_FAULT_N
};

/* The server's limit: newest minus oldest timestamp of a chunk. */
#define PROFILE_DURATION_MAX_US (66u * 1000000u)

/*
 * Checks every rule that can be checked before encoding; gives the first fault
 * in the order of the list above, so that the same profile always has the same
 * one. Allocates nothing. Nodes and frames that no sample uses are checked too:
 * the server does so.
 */
enum profile_fault profile_check(const struct profile *p);

/* A short name for stats, such as "duration_too_long"; "unknown" if it has
 * none. */
const char *profile_fault_name(enum profile_fault fault);

/* The thread's index in p->threads, or PROFILE_NONE. */
uint32_t profile_find_thread(const struct profile *p, uint32_t tid);

/* Is it all UTF-8? A text of a profile is nothing else. */
bool profile_is_utf8(const char *s);

/*
 * Upper bounds of what the parts take in a payload, for who has to cut a chunk
 * before it grows too large; strings come on top, PROFILE_ESCAPE_BYTES for a
 * byte at most (\u0000).
 */
#define PROFILE_SAMPLE_BYTES  111
#define PROFILE_STACK_BYTES   3 /* the frame indices come on top */
#define PROFILE_FRAME_BYTES   126
#define PROFILE_THREAD_BYTES  35
#define PROFILE_IMAGE_BYTES   361
#define PROFILE_MEASURE_BYTES 216
#define PROFILE_ESCAPE_BYTES  6

/*
 * The member of a sample that says whether its thread waits. Samples that wait
 * have it. If none does, the first sample says that its thread runs: so a
 * reader knows that the payload has states.
 */
#define PROFILE_STATE_WAITING ",\"state\":\"waiting\""
#define PROFILE_STATE_RUNNING ",\"state\":\"running\""

static inline size_t profile_digits(uint64_t value)
{
	size_t n = 1;

	for (; value >= 10; value /= 10)
		n++;
	return n;
}

/* The bytes of a frame's index and its comma in a stack. */
static inline size_t profile_index_bytes(uint32_t frame)
{
	return profile_digits(frame) + 1;
}

/*
 * An upper bound of what one sample takes; thread_id: what the payload calls
 * its thread. It is exact for a payload that is written to a file, but for the
 * digits of stack_id and the state of a first sample that runs. Samples are
 * most of a chunk, and PROFILE_SAMPLE_BYTES is half as long again as most of
 * them.
 */
static inline size_t profile_sample_bytes(const struct profile_sample *s, uint64_t thread_id)
{
	return sizeof(",{\"timestamp\":.123456,\"thread_id\":\"\",\"stack_id\":"
		      "}") -
	       1 + profile_digits(s->time_us / 1000000) + profile_digits(thread_id) +
	       profile_digits(s->node) + (s->is_waiting ? sizeof(PROFILE_STATE_WAITING) - 1 : 0);
}

#endif
