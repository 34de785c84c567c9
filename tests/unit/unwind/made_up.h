/*
 * Helpers of tests: walks of made-up stacks, with code of the test program or of a made-up file. A
 * failure ends the test.
 */
#ifndef TESTS_UNIT_UNWIND_MADE_UP_H
#define TESTS_UNIT_UNWIND_MADE_UP_H

#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/unwind.h"

/* The first address of the stack: above everything that a program maps. */
#define MADE_UP_STACK UINT64_C(0x7ffff0000000)

struct made_up {
	struct unwind_cache *cache;
	struct unwind_space *space;
	struct record_sample *sample; /* sp and pc are set; the stack is at its start */
	uint64_t *stack;	      /* the words of the stack, all 0 */
	struct unwind_stack out;      /* the result of the last walk */
};

/*
 * Makes a stack of n_words, and a space with the maps of this process. Only the file of code, which
 * is in this program, can be read: libraries are unknown.
 */
void made_up_start(struct made_up *m, size_t n_words, const uint8_t *code);
/* The same with these maps, a text as /proc/PID/maps, and these files (their ctx is NULL). */
void made_up_map(struct made_up *m, size_t n_words, const char *maps,
		 const struct unwind_files *files);
void made_up_end(struct made_up *m);

/* Walks the stack into m->out. */
void made_up_walk(struct made_up *m);
/* Walks, and checks that there are n frames, the second with the address caller if n > 1. */
void made_up_check(struct made_up *m, size_t n, uint64_t caller);

/* An address as unwind_frame.addr has it. */
static inline uint64_t made_up_word(const uint8_t *code)
{
	return (uint64_t)(uintptr_t)code;
}

/* Where the code of a made-up file begins, in the file and in memory. */
#define MADE_UP_CODE 0x1000

/*
 * Makes a file of code with symbols for n functions of 5 bytes, all called "tail", from an
 * address on, MADE_UP_STEP apart. The caller closes it.
 */
#define MADE_UP_STEP 16
int made_up_file(const uint8_t *code, size_t size, uint64_t tail, size_t n);

#endif
