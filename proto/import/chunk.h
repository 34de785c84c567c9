/*
 * A profile chunk that was read: the payload of a V2 profile_chunk item
 * (docs/FORMATS.md, "The payload") as plain structs. Used by sentry-profctl
 * convert.
 *
 * The payload may come from anyone. Every index and every type is checked; a
 * payload that breaks a rule gives -EBADMSG and a text that says where. Members
 * that are not known are ignored.
 *
 * Times are nanoseconds of Unix time, in whole microseconds: a JSON number
 * holds no more. Strings are UTF-8 without NUL. They may contain control
 * characters and markup: a writer escapes what its format needs.
 */
#ifndef PROTO_IMPORT_CHUNK_H
#define PROTO_IMPORT_CHUNK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The year 2262: a time in nanoseconds fits into an int64_t. */
#define IMPORT_TIME_MAX_S 9223372036.0

/*
 * Frames of one stack. The unwinder stops at 4,096; functions that were inlined
 * into these come on top. The bound keeps a small file with deep stacks from
 * becoming a huge output.
 */
#define IMPORT_STACK_FRAMES_MAX 16384u

struct import_fault {
	char text[256]; /* one line without control characters */
};

struct import_frame {
	uint64_t addr;	      /* 0: not known */
	const char *function; /* NULL: not known, as the next two */
	const char *package;  /* the path of its image; else its module */
	const char *file;     /* the source's path */
	uint32_t line;	      /* 0: not known */
	bool in_app;
};

struct import_image {
	const char *code_file; /* NULL: not known, as the next two */
	const char *debug_id;
	const char *code_id; /* the whole build-id in hex */
	uint64_t addr, vmaddr, size;
};

struct import_thread {
	const char *id;	  /* never NULL */
	const char *name; /* "": not known */
};

struct import_sample {
	uint64_t time_ns;
	/*
	 * Until the next sample of the same thread in this chunk, which ends
	 * this one. The last sample of a thread has no length of its own:
	 * is_last is set and lasts_ns is 0.
	 */
	uint64_t lasts_ns;
	uint32_t thread; /* index */
	uint32_t stack;	 /* index */
	bool is_waiting; /* "state": "waiting"; else it runs */
	bool is_last;
};

struct import_chunk {
	const char *profiler_id, *chunk_id; /* never NULL */
	const char *platform;		    /* NULL: not known */

	struct import_image *images;
	size_t n_images;
	struct import_frame *frames;
	size_t n_frames;
	/*
	 * Stack i is stack_frames[stack_starts[i]] up to, not including,
	 * stack_frames[stack_starts[i + 1]]: indices of frames, leaf first.
	 */
	size_t *stack_starts;
	uint32_t *stack_frames;
	size_t n_stacks;
	struct import_thread *threads;
	size_t n_threads;
	struct import_sample *samples; /* in the order of time */
	size_t n_samples;
	/* Some sample has a state. Without any, all samples count as running.
	 */
	bool has_states;

	/* The payload itself, for members that the structs lack. */
	json_t *payload;
};

/*
 * Takes over a parsed payload: import_chunk_fini releases it, and so does this
 * function where it fails. All strings are the payload's. Returns 0, -EBADMSG
 * with *fault, or -ENOMEM.
 */
int import_chunk_read(json_t *payload, struct import_chunk *ret, struct import_fault *fault)
	__attribute__((warn_unused_result));

/* Frees everything; c is all zeros then. Takes NULL and zeros. */
void import_chunk_fini(struct import_chunk *c);

/* For import_text, which has faults of its own. Returns -EBADMSG. */
int import_fault_set(struct import_fault *fault, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
