/*
 * An instruction of x86-64 taken apart: prefixes, opcode, operands. Every one
 * is known by how long it is, what it means by x86_64_insn.h only.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume
 * 2, chapter 2 (formats) and appendix A (opcode maps).
 */
#ifndef LIB_UNWIND_X86_64_X86_64_PARTS_H
#define LIB_UNWIND_X86_64_X86_64_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
