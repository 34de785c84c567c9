/*
 * The model of a profile, from which every payload is written (chunk_v2.h, profile_v1.h), and a
 * check of whether the server would accept the profile. unwind builds a profile for each chunk.
 *
 * The structs are plain data: the arrays and strings belong to the caller and must outlive the
 * calls that get the profile. Indices are those of the arrays of the same profile. Addresses are
 * those of the target's address space; times are Unix time in microseconds. Strings must be valid
 * UTF-8: profile_check() finds strings that are not, except symbols and command_line.
 */
#ifndef PROTO_PROFILE_H
#define PROTO_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_NONE UINT32_MAX /* in place of an index: none */

/* Size of an id, with the NUL: 16 random bytes as 32 lower-case hexadecimal digits. */
#define PROFILE_ID_SIZE 33

struct profile_image {
	const char *code_file; /* path; never NULL */
	/*
	 * The build-id, or a substitute for a file without one. The formats derive their own id
	 * from it (debug_meta_id).
	 */
	const uint8_t *id;
	size_t id_size;
	bool has_build_id; /* id is a real build-id */
	uint64_t addr;	   /* address of its first segment in memory */
	uint64_t vmaddr;   /* p_vaddr of that segment in the file */
	uint64_t size;	   /* bytes */
};

struct profile_frame {
	uint64_t addr;	      /* as unwind_frame.addr: the leaf's pc, or a return address */
	const char *function; /* name of the function, or NULL */
	const char *package;  /* path of the image, or NULL */
	bool in_app;	      /* of Sentry: code of the application, and not of a library */
	const char *file;     /* path of the source file, or NULL */
	uint32_t line;	      /* line in file; 0: unknown */
};

/*
 * The source lines of a frame, and the functions that were inlined at its address, for payloads for
 * files: a server gets neither. A source line for the server is in struct profile_frame instead.
 */
struct profile_lines {
	/* The n inlined functions are in profile.inlined from index first on, innermost first. */
	uint32_t first, n;
	/* The position in the frame's own function. */
	const char *file; /* path of the source file, or NULL */
	uint32_t line;	  /* line in file; 0: unknown */
};

/*
 * A node of the trie of stacks. A stack is the path from a node to the root: the node has the
 * innermost frame, its parent the caller's. Parents come before their children in the array.
 */
struct profile_node {
	uint32_t parent; /* index in profile.nodes; PROFILE_NONE: this is a root */
	uint32_t frame;	 /* index in profile.frames */
};

/* What a thread does at a tick (lib/capture/sample.h). */
enum profile_state {
	PROFILE_RUNNING, /* on a processor */
	PROFILE_READY,	 /* runnable, but without a processor */
	PROFILE_WAITING, /* blocked */
	PROFILE_STATES
};

struct profile_sample {
	uint64_t time_us; /* Unix time */
	uint32_t tid;
	uint32_t node; /* index of the leaf's node; PROFILE_NONE: empty stack, the thread is idle */
	/*
	 * The thread's state from this sample to the thread's next one. PROFILE_RUNNING if the
	 * stack is empty. Only payloads for files have states.
	 */
	enum profile_state state;
	/*
	 * The sample only separates a ready time from a waiting time with the same stack. A payload
	 * for the server has no states, so it leaves the sample out.
	 */
	bool is_for_files;
};

struct profile_thread {
	uint32_t tid;
	const char *name; /* "": unknown */
	uint64_t id;	  /* the thread_id of the payload; 0: the tid */
};

/* CPU and memory that the process used: a point on each of three curves. */
struct profile_measurement {
	uint64_t time_us;		 /* Unix time */
	uint64_t cpu_percent_millionths; /* 100 % is one processor */
	uint64_t memory_bytes;		 /* resident memory (RSS) */
	uint64_t anonymous_bytes;	 /* the anonymous part of it (RssAnon) */
};

struct profile {
	char profiler_id[PROFILE_ID_SIZE];
	char chunk_id[PROFILE_ID_SIZE];
	const char *platform;
	const char *release;
	const char *environment;
	const char *sdk_name;
	const char *sdk_version;
	const char *symbols;	  /* value of the member PROFILE_SYMBOLS; NULL: it is left out */
	const char *command_line; /* the same for PROFILE_COMMAND_LINE */

	const struct profile_image *images; /* sorted by addr */
	size_t n_images;
	const struct profile_frame *frames;
	size_t n_frames;
	const struct profile_lines *lines;   /* by frame: n_frames elements; NULL: none */
	const struct profile_frame *inlined; /* the inlined functions of all lines */
	size_t n_inlined;
	const struct profile_node *nodes;
	size_t n_nodes;
	const struct profile_sample *samples; /* sorted by time, then tid */
	size_t n_samples;
	const struct profile_thread *threads; /* sorted by tid */
	size_t n_threads;
	const struct profile_measurement *measurements; /* sorted by time; may be empty */
	size_t n_measurements;
};

/*
 * Reasons for which the server would refuse a profile, or accept and silently drop it, by the
 * rules in docs/FORMATS.md.
 */
enum profile_fault {
	PROFILE_OK,
	PROFILE_NO_SAMPLES,	  /* no thread has two samples with a stack */
	PROFILE_BAD_ID,		  /* profiler_id or chunk_id is malformed, or an image has no id */
	PROFILE_MISSING_METADATA, /* no platform, release, environment or sdk */
	PROFILE_TOO_LONG,	  /* more than PROFILE_DURATION_MAX_US */
	PROFILE_BAD_INDEX,	  /* a node, frame or parent is out of range, or a
				     parent comes after its child */
	PROFILE_BAD_TEXT,	  /* a string that is not UTF-8 */
	PROFILE_NO_ADDRESS,	  /* a frame without an address */
	PROFILE_BAD_ORDER,	  /* samples are not sorted by time and tid, a thread
				     has two at one time, or threads are not sorted */
	/* The frame next to a stack's root has no function: the server would cut the stack. */
	PROFILE_ROOT_CALLEE_WITHOUT_NAME,
	PROFILE_IMAGES_OVERLAP, /* images overlap or are not sorted */
	PROFILE_UNKNOWN_THREAD, /* a sample's tid is not among the threads */
	PROFILE_FAULT_N
};

/* The server's limit on the time from the oldest to the newest sample of a chunk. */
#define PROFILE_DURATION_MAX_US (66u * 1000000u)

/*
 * Checks a profile for all faults of the enum. Returns the first one in the order of the enum, or
 * PROFILE_OK. Also checks nodes and frames that no sample uses, as the server does. Allocates
 * nothing.
 */
enum profile_fault profile_check(const struct profile *p);

/* Returns the name of a fault in statistics, such as "duration_too_long", or "unknown". */
const char *profile_fault_name(enum profile_fault fault);

/* Returns the index of the thread in p->threads, or PROFILE_NONE. */
uint32_t profile_find_thread(const struct profile *p, uint32_t tid);

/* Returns true if s is valid UTF-8, as every string of a profile must be. */
bool profile_is_utf8(const char *s);

/*
 * Upper bounds of the bytes that each element takes in a payload, without its strings. A string
 * takes at most PROFILE_ESCAPE_BYTES in addition for each of its bytes (\u0000). unwind adds the
 * bounds up while it collects samples, and ends a chunk before the payload becomes too large
 * (lib/aggregate/open_chunk.h).
 */
#define PROFILE_SAMPLE_BYTES	  111
#define PROFILE_STACK_BYTES	  3 /* in addition: profile_index_bytes() for each frame */
#define PROFILE_FRAME_BYTES	  126
#define PROFILE_THREAD_BYTES	  35
#define PROFILE_IMAGE_BYTES	  361
#define PROFILE_MEASUREMENT_BYTES 216
#define PROFILE_ESCAPE_BYTES	  6

/*
 * The member that gives a sample's state, in a payload for a file. A running sample does not have
 * the member, with one exception: if all samples are running, the first one has it. This shows a
 * reader that the payload has states at all.
 */
#define PROFILE_STATE_RUNNING ",\"state\":\"running\""
#define PROFILE_STATE_READY   ",\"state\":\"ready\""
#define PROFILE_STATE_WAITING ",\"state\":\"waiting\""

/*
 * A member of a frame in a payload for a file: the lines of the functions at the frame's address
 * (struct profile_lines), a list of objects, innermost first. An inlined function has the member
 * "function"; the last element is the frame's own function, and has none. Each has "file" and
 * "line" if they are known.
 */
#define PROFILE_LINES "lines"
/* The most elements of the list, as UNWIND_LINES_MAX. */
#define PROFILE_LINES_MAX 32

/*
 * A member of a payload for a file, true if the profiler told ready from waiting. Without the
 * member a sample with the state "waiting" may be ready.
 */
#define PROFILE_READY_KNOWN "ready_known"

/*
 * A member of a payload for a file: what the profiler looked for by its options. "none", "names",
 * or "lines", which includes names and inlined functions.
 */
#define PROFILE_SYMBOLS "symbols"

/*
 * A member of a payload that was made from a page: true, since samples with the same stack and
 * state in a row are one sample there.
 */
#define PROFILE_JOINED_SAMPLES "joined_samples"

/*
 * A member of a payload from which a page is made: the arguments of the process with spaces between
 * them, as ps(1) shows them. They may contain secrets.
 */
#define PROFILE_COMMAND_LINE "command_line"

/* Returns the name of a state, as in a payload: "running", "ready" or "waiting". */
const char *profile_state_name(enum profile_state state);

/* Returns the number of decimal digits of value. */
static inline size_t profile_digits(uint64_t value)
{
	size_t n = 1;

	for (; value >= 10; value /= 10)
		n++;
	return n;
}

/* Returns the bytes of a frame's index and its comma in a stack. */
static inline size_t profile_index_bytes(uint32_t frame)
{
	return profile_digits(frame) + 1;
}

/*
 * Returns an upper bound of the bytes of one sample in a payload: a closer one than
 * PROFILE_SAMPLE_BYTES, which is 1.5 times the length of most samples. The first sample may have
 * PROFILE_STATE_RUNNING in addition. thread_id is the id in the payload: profile_thread.id or, if
 * that is 0, the tid.
 *
 * For a payload for a file the bound exceeds the real size only by digits of stack_id, trailing
 * zeros of the time, the comma of the first sample, and the letters by which "ready" is shorter
 * than "waiting".
 */
static inline size_t profile_sample_bytes(const struct profile_sample *s, uint64_t thread_id)
{
	return sizeof(",{\"timestamp\":.123456,\"thread_id\":\"\",\"stack_id\":"
		      "}") -
	       1 + profile_digits(s->time_us / 1000000) + profile_digits(thread_id) +
	       profile_digits(s->node) +
	       (s->state == PROFILE_RUNNING ? 0 : sizeof(PROFILE_STATE_WAITING) - 1);
}

#endif
