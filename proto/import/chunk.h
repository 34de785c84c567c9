/*
 * Parses a profile chunk: the payload of a V2 profile_chunk item (docs/FORMATS.md, "The
 * payload"). Used by the commands of sentry-profctl that read profiles.
 *
 * The payload may come from anyone, so every index and every type is checked. For an invalid
 * payload the functions return -EBADMSG and a text with the place of the fault. Unknown members are
 * ignored.
 *
 * Times are nanoseconds of Unix time, rounded to microseconds: a JSON number is not more precise.
 * Strings are UTF-8 without NUL; they may contain control characters and markup, so code that
 * writes them has to escape them.
 */
#ifndef PROTO_IMPORT_CHUNK_H
#define PROTO_IMPORT_CHUNK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/profile.h"

/* In the year 2262: up to then a time in nanoseconds fits an int64_t. */
#define IMPORT_TIME_MAX_S 9223372036.0

/*
 * The limit of frames in a stack: 4,096 of the unwinder, plus inlined functions. It keeps a
 * small input with deep stacks from becoming a huge output. If a stack with its inlined functions
 * exceeds the limit, some of these are left out. A stack that exceeds it without them is a fault.
 */
#define IMPORT_STACK_FRAMES_MAX 16384u

/* What is wrong with an input. Only set if a function returns -EBADMSG. */
struct import_fault {
	char text[256]; /* a line of printable ASCII: "profile.stacks is not a list" */
};

struct import_frame {
	uint64_t addr;	      /* 0: unknown */
	const char *function; /* NULL: unknown */
	const char *package;  /* path of the image, or name of the module; NULL: unknown */
	const char *file;     /* path of the source file; NULL: unknown */
	uint32_t line;	      /* 0: unknown */
	bool in_app;
};

/* The members are as in struct profile_image; the strings may be NULL: unknown. */
struct import_image {
	const char *code_file;
	const char *debug_id;
	const char *code_id; /* the whole build-id in hex */
	uint64_t addr, vmaddr, size;
};

struct import_thread {
	const char *id;	  /* never NULL */
	const char *name; /* "": unknown */
};

struct import_sample {
	uint64_t time_ns;
	/*
	 * The time until the next sample of the same thread in this chunk. The last sample of
	 * a thread has no duration: is_last is set and duration_ns is 0.
	 */
	uint64_t duration_ns;
	uint32_t thread;	  /* index in threads */
	uint32_t stack;		  /* number of the stack: see stack_starts */
	enum profile_state state; /* of the thread up to its next sample */
	bool is_last;
};

struct import_chunk {
	const char *profiler_id, *chunk_id; /* never NULL */
	const char *platform;		    /* NULL: unknown */
	const char *main_program; /* path; NULL: unknown, images may tell (merge_main_program) */
	const char *command_line; /* PROFILE_COMMAND_LINE; NULL: unknown */

	struct import_image *images;
	size_t n_images;
	/* Each inlined function in PROFILE_LINES of the payload is a frame of its own here. */
	struct import_frame *frames;
	size_t n_frames;
	/*
	 * Stack i is stack_frames[stack_starts[i]] up to, but not including,
	 * stack_frames[stack_starts[i + 1]]: indices of frames, leaf first.
	 */
	size_t *stack_starts;
	uint32_t *stack_frames;
	size_t n_stacks;
	struct import_thread *threads;
	size_t n_threads;
	struct import_sample *samples; /* sorted by time */
	size_t n_samples;
	/* Some sample has a state in the payload. A sample without one is PROFILE_RUNNING here. */
	bool has_states;
	/*
	 * Some sample is PROFILE_WAITING but may be ready: the profiler did not tell ready from
	 * waiting (PROFILE_READY_KNOWN).
	 */
	bool hides_ready;
	/* By its options the profiler did not look for source lines (PROFILE_SYMBOLS). */
	bool lacks_lines;
	/* Samples with the same stack and state in a row are one (PROFILE_JOINED_SAMPLES). */
	bool joins_samples;

	/*
	 * The parsed payload, which owns the strings, and has the members for which there is no
	 * struct here. In a chunk of import_page_next() (page.h) the page owns most strings.
	 */
	json_t *payload;
};

/*
 * Makes a chunk from a parsed payload. Takes ownership of the payload, also on an error. Returns 0,
 * -EBADMSG with *fault, or -ENOMEM. After 0 the caller releases the chunk by import_chunk_fini().
 */
int import_chunk_read(json_t *payload, struct import_chunk *ret, struct import_fault *fault)
	__attribute__((warn_unused_result));

/* Sorts the samples by time. For proto/import only. */
void import_chunk_sort(struct import_chunk *c);

/* Frees everything and zeroes *c. Accepts NULL and a zero-initialised struct. */
void import_chunk_fini(struct import_chunk *c);

/* Formats the text of a fault, and returns -EBADMSG. For proto/import only. */
int import_fault_set(struct import_fault *fault, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
