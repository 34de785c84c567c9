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
	bool loads_fp;	  /* it loads rbp, from sp + fp as sp was before */
	int32_t fp_at;
	bool saves_fp; /* it pushes rbp */
};

/* The one at code. False if it is none, or none known, of at most n bytes. */
bool x86_64_insn_read(const uint8_t *code, size_t n, struct x86_64_insn *ret);

/* Bits of REX. */
#define X86_64_REX_B 1u
#define X86_64_REX_R 4u
#define X86_64_REX_W 8u

struct x86_64_parts {
	const uint8_t *code;
	size_t n;
	size_t at; /* behind what was read */
	uint8_t rex;
	bool small;  /* the prefix 66: operands of 16 bits */
	uint8_t map; /* 1, 2 (0f), 3 (0f 38), 4 (0f 3a) */
	bool vex;    /* or EVEX: op is of another table, read the same way */
	bool evex;
	uint8_t op;
	uint8_t modrm;
	uint8_t sib;
	int32_t displacement;
	int32_t imm;
};

/*
 * The one at code, of at most n bytes: its size is ret->at. False if it is
 * none, or none known.
 */
bool x86_64_parts_read(const uint8_t *code, size_t n, struct x86_64_parts *ret);

#endif
