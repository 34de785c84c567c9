/*
 * What code.c, code_start.c and code_way.c have in common: the bytes of an
 * image's code, and the answers that are kept with it.
 */
#ifndef LIB_UNWIND_SPACE_CODE_READ_H
#define LIB_UNWIND_SPACE_CODE_READ_H

#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/space/space.h"

/* What is asked about code; an answer is a word. */
enum code_question {
	CODE_CALLS,	/* what stands before a return address */
	CODE_STARTS,	/* what stands at an address */
	CODE_VARYING,	/* does the function's frame vary? */
	CODE_JUMPS,	/* does the function end in that one? */
	CODE_TAILS,	/* what the function jumps to */
	CODE_FUNCTIONS, /* where what has no name starts */
	CODE_WAYS,	/* the way from an address to a ret */
	CODE_HEIGHTS,	/* of the stack, at a place in a function */
	CODE_INSTALLS,	/* is an exception's handler installed? */
	CODE_BIRTHS,	/* is it a thread's first code? */
};

/* Code about which something is asked. */
struct code_at {
	struct unwind_space *space;
	struct space_mapping *mapping;
	const struct map *map;
	uint64_t vaddr;
	uint64_t key; /* of the question */
};

/*
 * Asks about the code at addr and, where the question is about two places, the
 * one at addr + distance. True if its image has no answer yet: it is to be read
 * from *ret, and given to code_remember. Else *fact is the answer, or as it
 * was, if there is no image that can be read.
 *
 * A key has 32 bits for the place and 28 for the distance: of what is behind
 * the first 4 GiB of an image, or 128 MiB apart, there is no answer.
 */
bool code_ask(struct unwind_space *s, enum code_question question, uint64_t addr, uint64_t distance,
	      struct code_at *ret, uint32_t *fact);

/*
 * Keeps an answer, but none of a call in which code could not be read: this may
 * be for one process only, and the answer is for all. Forgetting one costs time
 * only.
 */
void code_remember(const struct code_at *c, uint32_t fact);

/* The mapping at addr, if there is an image that can be read; or NULL. */
struct space_mapping *code_mapping(struct unwind_space *s, uint64_t addr,
				   const struct map **ret_map);

/*
 * Reads up to n bytes of code at vaddr from the image's file. Where that can't
 * be had, there are none in the whole call of the module.
 */
size_t code_read(const struct code_at *c, uint64_t vaddr, uint8_t *bytes, size_t n);

#endif
