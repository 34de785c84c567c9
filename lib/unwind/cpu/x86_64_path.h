/*
 * Finds where the return address is on the stack, for code without call frame information, by
 * following the code: from an instruction to a ret, or from the start of a function to an
 * instruction. A path is a sequence of instructions that the processor can take.
 */
#ifndef LIB_UNWIND_CPU_X86_64_PATH_H
#define LIB_UNWIND_CPU_X86_64_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How code is read, and how much of it. The caller sets steps to 0 at first. */
struct x86_64_code {
	/* Reads up to n bytes at vaddr. Returns how many were read. */
	size_t (*read)(void *ctx, uint64_t vaddr, uint8_t *bytes, size_t n);
	void *ctx;	    /* passed to read */
	uint32_t steps;	    /* number of instructions that all searches have decoded so far */
	uint32_t steps_max; /* searches give up when steps has reached this */
};

/*
 * The offsets in struct x86_64_path, in bytes, are multiples of 8 and less than this, the usual
 * limit of a copied stack (SAMPLE_STACK_MAX in lib/capture/sample.h).
 */
#define X86_64_PATH_MAX (512u * 1024)
/* The saved frame pointer is less than this many bytes below the return address. */
#define X86_64_PATH_FP_MAX  (2u * 1024)
#define X86_64_PATH_FP_SAME UINT32_MAX /* not saved: the frame pointer still is in rbp */

/*
 * What the offsets of a path count from. Assembly that aligns its stack keeps the old stack pointer
 * in a register or in a word of its frame, and restores it from there at the end.
 */
enum x86_64_base {
	X86_64_BASE_SP,	   /* the stack pointer */
	X86_64_BASE_WORD,  /* the value of the word that is base_at bytes above the stack pointer */
	X86_64_BASE_VALUE, /* the value of the register base_at, by DWARF's number */
};

/* The base_at of X86_64_BASE_WORD is less than this, in bytes. */
#define X86_64_PATH_BASE_MAX (32u * 1024)
/* With a base other than the stack pointer, x86_64_path.ra is at most this, in bytes. */
#define X86_64_PATH_POPS_MAX (15u * 8)

struct x86_64_path {
	uint32_t ra; /* offset of the return address from the base, upwards, in bytes */
	/* Offset of the saved frame pointer, as ra, or X86_64_PATH_FP_SAME. */
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
 * Finds a path from the instruction at vaddr to a ret, without a call if possible. Offsets count
 * from the base as it is before that instruction. Returns false if no path is found within
 * c->steps_max.
 */
bool x86_64_path_to_ret(struct x86_64_code *c, uint64_t vaddr, struct x86_64_path *ret);

/*
 * Finds a path from the function start at `from` to the instruction at `to`. The base is the stack
 * pointer before the instruction at `to`. If the path does not push rbp, ret->fp is
 * X86_64_PATH_FP_SAME. ret->has_call is always false: the path goes on behind calls, and does not
 * note them. Returns false if no path is found within c->steps_max.
 */
bool x86_64_path_from_start(struct x86_64_code *c, uint64_t from, uint64_t to,
			    struct x86_64_path *ret);

/*
 * For functions that end with __builtin_eh_return, such as those of libgcc that throw exceptions.
 * Before such a function jumps to the exception handler, it overwrites the caller's registers in
 * its frame with the handler's. From then on the frame does not show the caller's.
 *
 * code: the n bytes from the frame's next instruction on. Returns true if the function seems to
 * have overwritten registers: from code on it comes to "mov %rcx,%rsp", or to the "jmp *%rcx"
 * behind it, with at most one call (_Unwind_DebugHook, which does nothing) and without a return.
 * On the way it may branch forwards only over code that unwinds a shadow stack.
 *
 * Source: gcc, libgcc/unwind-dw2.c (uw_install_context) and config/i386/i386.cc
 * (ix86_expand_epilogue, style 2).
 */
#define X86_64_INSTALLS_MAX 192 /* bytes of code that are enough; the code of gcc 12 needs 132 */
bool x86_64_installs_handler(const uint8_t *code, size_t n);

#endif
