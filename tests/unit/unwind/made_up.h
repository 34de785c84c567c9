/*
 * For the tests: walks of stacks that a test makes up, in code of its own
 * program; and files of code that it makes up. Every failure ends the test.
 */
#ifndef TESTS_UNIT_UNWIND_MADE_UP_H
#define TESTS_UNIT_UNWIND_MADE_UP_H

#include <elf.h>
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
void made_up_end(struct made_up *m);

void made_up_walk(struct made_up *m);

/* As unwind_frame.addr has it. */
static inline uint64_t made_up_word(const uint8_t *code)
{
	return (uint64_t)(uintptr_t)code;
}

/*
 * The file of size bytes, all of it code at its own offsets, whose sections
 * stand at that offset, their names in the third: writes its headers, and
 * returns a descriptor of a copy, the caller's.
 */
int made_up_file(uint8_t *file, size_t size, size_t sections,
		 Elf64_Half n_sections);

#endif
