/*
 * What an instruction of x86-64 does to the stack pointer and where it leads:
 * no more, but of every instruction how long it is. For code without call frame
 * information.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume
 * 2, chapter 2 (formats) and appendix A (opcode maps).
 */
#ifndef LIB_UNWIND_X86_64_X86_64_INSN_H
#define LIB_UNWIND_X86_64_X86_64_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No instruction is longer. */
#define X86_64_INSN_MAX 15

enum x86_64_kind {
	X86_64_INSN_OTHER,
	X86_64_INSN_CALL,
	X86_64_INSN_JUMP,   /* by distance */
	X86_64_INSN_BRANCH, /* perhaps, by distance */
	X86_64_INSN_RET,    /* or a jump that hands the return address on */
	X86_64_INSN_END,    /* nothing follows that is known */
};

struct x86_64_insn {
	size_t size;
	enum x86_64_kind kind;
	int32_t distance; /* from the next instruction */
	int32_t sp;	  /* what it adds to the stack pointer */
	bool sp_lost;	  /* it sets that in a way that is not known */
	bool has_fp;	  /* it loads rbp, from sp + fp as sp was before */
	int32_t fp;
	bool saves_fp; /* it pushes rbp */
};

/* The one at code. False if it is none, or none known, of at most n bytes. */
bool x86_64_insn_read(const uint8_t *code, size_t n, struct x86_64_insn *ret);

#endif
