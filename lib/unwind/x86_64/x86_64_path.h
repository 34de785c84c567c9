/*
 * Where the return address is in code without call frame information, read from
 * the code: along the ways that it can take from a place to a ret, or from a
 * function's start to that place.
 */
#ifndef LIB_UNWIND_X86_64_X86_64_PATH_H
#define LIB_UNWIND_X86_64_X86_64_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How code is read: n bytes at vaddr, or fewer. */
struct x86_64_code {
	size_t (*read)(void *ctx, uint64_t vaddr, uint8_t *bytes, size_t n);
	void *ctx;
	uint32_t steps;	    /* instructions that were read */
	uint32_t steps_max; /* none are read beyond */
};

/* Offsets from the stack pointer, multiples of 8 below this: as a copy is. */
#define X86_64_PATH_MAX (512u * 1024)
/* The frame pointer is less than that below the return address. */
#define X86_64_PATH_FP_MAX  (2u * 1024)
#define X86_64_PATH_FP_SAME UINT32_MAX /* it is not restored */

struct x86_64_path {
	uint32_t ra; /* of the return address */
	uint32_t fp; /* of the caller's frame pointer */
	/* There is a call on the way, which may be one that does not return. */
	bool has_call;
};

/*
 * From vaddr to a ret, without a call in between if there is such a way. False
 * if none is found.
 */
bool x86_64_path_to_ret(struct x86_64_code *c, uint64_t vaddr, struct x86_64_path *ret);

/*
 * From the start of a function to a place in it: where the return address is
 * there, and the frame pointer, if it was pushed. False if no way leads there.
 */
bool x86_64_path_from_start(struct x86_64_code *c, uint64_t from, uint64_t to,
			    struct x86_64_path *ret);

/*
 * In a function that ends by __builtin_eh_return: is code what follows, or the
 * middle of it, when the handler's registers have been put in place of those
 * that the function has saved? At most a call (_Unwind_DebugHook's, which does
 * nothing) and then moves lead to "mov %rcx,%rsp" or what is behind that,
 * "jmp *%rcx". What goes back in a shadow stack on the way is passed over.
 *
 * Source: gcc, libgcc/unwind-dw2.c (uw_install_context) and
 * config/i386/i386.cc (ix86_expand_epilogue, style 2).
 */
#define X86_64_INSTALLS_MAX 192 /* gcc 12 needs 132 */
bool x86_64_installs_handler(const uint8_t *code, size_t n);

#endif
