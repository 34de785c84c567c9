/*
 * A decoder of x86-64 instructions, for the unwinding of code without call frame information
 * (x86_64_path.h). For an instruction the decoder gives the size, what the instruction adds to the
 * stack pointer, whether it saves or loads rbp, and where a relative jump leads.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter
 * 2 (formats) and appendix A (opcode maps).
 */
#ifndef LIB_UNWIND_CPU_X86_64_INSN_H
#define LIB_UNWIND_CPU_X86_64_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the longest instruction. */
#define X86_64_INSN_MAX 15

enum x86_64_kind {
	X86_64_INSN_OTHER,
	X86_64_INSN_CALL,   /* relative or indirect */
	X86_64_INSN_JUMP,   /* relative */
	X86_64_INSN_BRANCH, /* relative, conditional */
	/*
	 * Also a jump through n(%rip), a tail call. Exception: if a push follows the jump, as in a
	 * PLT, the kind is OTHER, because the jump may lead to the push.
	 */
	X86_64_INSN_RET,
	X86_64_INSN_END, /* what follows is unknown: other indirect jumps; int3, hlt, ud2 */
};

struct x86_64_insn {
	size_t size; /* bytes */
	enum x86_64_kind kind;
	/* Bytes from the next instruction to the target of a relative jump or call; else 0. */
	int32_t distance;
	/*
	 * Bytes that the instruction adds to rsp. A call has 0, because rsp is the same after it
	 * has returned. A ret has 0, too.
	 */
	int32_t sp;
	/*
	 * rsp gets another value than its old one plus sp: ignore sp. If neither sp_is_copied nor
	 * loads_sp is set, the new value is unknown.
	 */
	bool sp_lost;
	bool sp_is_copied; /* rsp becomes the value of register sp_from */
	uint8_t sp_from;   /* by its number in instructions, not by DWARF's */
	bool loads_sp;	   /* rsp becomes the word that is sp_at bytes above the old rsp */
	int32_t sp_at;
	bool loads_fp; /* loads rbp from the word that is fp_at bytes above the old rsp */
	int32_t fp_at;
	bool saves_fp; /* pushes rbp */
};

/*
 * Decodes the instruction at code, of which n bytes can be read. Returns false if the instruction
 * is invalid, unknown to the decoder, or longer than n bytes.
 */
bool x86_64_insn_read(const uint8_t *code, size_t n, struct x86_64_insn *ret);

/* Bits of the REX prefix. */
#define X86_64_REX_B 1u
#define X86_64_REX_R 4u
#define X86_64_REX_W 8u

/* The parts of an instruction: prefixes, opcode, operands. Absent parts are 0. */
struct x86_64_parts {
	const uint8_t *code;
	size_t n;    /* bytes that can be read */
	size_t at;   /* bytes that were read */
	uint8_t rex; /* bits X86_64_REX_* of the REX prefix; R and B of a VEX or EVEX prefix */
	bool small;  /* prefix 66: operands of 16 bits */
	uint8_t map; /* the opcode map: 1, 2 (0f), 3 (0f 38), 4 (0f 3a) */
	bool vex;    /* VEX or EVEX: op names another instruction than without this prefix */
	bool evex;
	uint8_t op;
	uint8_t modrm;
	uint8_t sib;
	int32_t displacement;
	int32_t imm; /* the constant, or the distance of a jump; of 8 bytes the first 4 */
};

/*
 * Splits the instruction at code into its parts; ret->at is the instruction's size. Returns false
 * in the cases of x86_64_insn_read().
 */
bool x86_64_parts_read(const uint8_t *code, size_t n, struct x86_64_parts *ret);

#endif
