/*
 * For the tests: walks of stacks that a test makes up, in code of its own
 * program or of a file that it makes up. Every failure ends the test.
 */
#ifndef TESTS_UNIT_UNWIND_MADE_UP_H
#define TESTS_UNIT_UNWIND_MADE_UP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/unwind.h"

/* Where the stack begins: above all that a program has mapped. */
#define MADE_UP_STACK UINT64_C(0x7ffff0000000)

struct made_up {
	struct unwind_cache *cache;
	struct unwind_space *space;
	struct record_sample *sample; /* of sp and pc, at the stack's start */
	uint64_t *stack;	      /* the words of it, all 0 */
	struct unwind_stack out;      /* of the last walk */
};

/*
 * A stack of n_words. code is of this program, whose file is the only one that
 * there is: of libraries nothing is known.
 */
void made_up_start(struct made_up *m, size_t n_words, const uint8_t *code);
/* The same where maps says what is mapped, and these are the files. */
void made_up_map(struct made_up *m, size_t n_words, const char *maps,
		 const struct unwind_files *files);
void made_up_end(struct made_up *m);

void made_up_walk(struct made_up *m);
/* Walks to n frames, the second of them at caller; n of 1: there is none. */
void made_up_check(struct made_up *m, size_t n, uint64_t caller);

/* As unwind_frame.addr has it. */
static inline uint64_t made_up_word(const uint8_t *code)
{
	return (uint64_t)(uintptr_t)code;
}

/* Where a made-up file's code begins, in the file and in memory. */
#define MADE_UP_CODE 0x1000

/*
 * A file of code, with symbols for n functions of 5 bytes, all called "tail",
 * the first at an address, each MADE_UP_STEP behind the one before. The caller
 * closes it.
 */
#define MADE_UP_STEP 16
int made_up_file(const uint8_t *code, size_t size, uint64_t tail, size_t n);

#endif
