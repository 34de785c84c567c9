/*
 * Finds the return address in code without call frame information, by following the code:
 * along the paths that it can take from an instruction to a ret, or from the start of a
 * function to an instruction.
 */
#ifndef LIB_UNWIND_CPU_X86_64_PATH_H
#define LIB_UNWIND_CPU_X86_64_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How code is read, and how much of it. */
struct x86_64_code {
	/* Reads up to n bytes at vaddr. Returns how many were read. */
	size_t (*read)(void *ctx, uint64_t vaddr, uint8_t *bytes, size_t n);
	void *ctx;
	uint32_t steps;	    /* instructions that were decoded */
	uint32_t steps_max; /* the limit of steps */
};

/* Offsets from the stack pointer are multiples of 8 below this, as large as a copy is. */
#define X86_64_PATH_MAX (512u * 1024)
/* The saved frame pointer is less than this below the return address. */
#define X86_64_PATH_FP_MAX  (2u * 1024)
#define X86_64_PATH_FP_SAME UINT32_MAX /* not saved: it still is in rbp */

/*
 * What the offsets of a path count from. Assembly that aligns its stack keeps the stack pointer
 * from before in a register or in a word of its frame, and takes it back from there at the end.
 */
enum x86_64_base {
	X86_64_BASE_SP,	   /* the stack pointer */
	X86_64_BASE_WORD,  /* the value of the word that is base_at bytes above the stack pointer */
	X86_64_BASE_VALUE, /* the value of the register base_at, by DWARF's number */
};

/* base_at is less than this. Offsets from a base other than the stack pointer are at most this. */
#define X86_64_PATH_BASE_MAX (32u * 1024)
#define X86_64_PATH_POPS_MAX (15u * 8)

struct x86_64_path {
	uint32_t ra; /* offset of the return address from the base */
	/* Offset of the saved frame pointer from the base, or X86_64_PATH_FP_SAME. */
	uint32_t fp;
	/*
	 * A call is on the path. If the called function does not return, the code behind the call
	 * can belong to another function, and the path is wrong.
	 */
	bool has_call;
	enum x86_64_base base;
	uint32_t base_at; /* 0 with X86_64_BASE_SP */
};

/*
 * Finds a path from vaddr to a ret, without a call if possible. Returns false if none is found.
 */
bool x86_64_path_to_ret(struct x86_64_code *c, uint64_t vaddr, struct x86_64_path *ret);

/*
 * Finds a path from the start of a function, from, to the instruction at to. ret->fp is
 * X86_64_PATH_FP_SAME unless the path pushes rbp, and the base is the stack pointer. Returns false
 * if none is found.
 */
bool x86_64_path_from_start(struct x86_64_code *c, uint64_t from, uint64_t to,
			    struct x86_64_path *ret);

/*
 * For a function that ends with __builtin_eh_return. code: the n bytes from the next instruction
 * on. Returns true if the function has already replaced the registers that it saved by those of an
 * exception handler: then at most one call (_Unwind_DebugHook, which does nothing) and moves lead
 * from code to "mov %rcx,%rsp", or to the "jmp *%rcx" behind it. Code that unwinds a shadow stack
 * on the way is skipped.
 *
 * Source: gcc, libgcc/unwind-dw2.c (uw_install_context) and config/i386/i386.cc
 * (ix86_expand_epilogue, style 2).
 */
#define X86_64_INSTALLS_MAX 192 /* bytes of code that are enough; the code of gcc 12 needs 132 */
bool x86_64_installs_handler(const uint8_t *code, size_t n);

#endif
