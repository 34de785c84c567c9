/*
 * How a function that ends by __builtin_eh_return goes over to a handler: what
 * libgcc's _Unwind_RaiseException, _Unwind_Resume and _Unwind_ForcedUnwind do
 * last. They have overwritten the registers that they saved with the handler's
 * by then, and call frame information knows nothing of it.
 *
 * The instructions from there on are few, lead straight to the jump into the
 * handler, and do nothing but moves: they are carried out here, on a copy of
 * the registers, and what they store goes nowhere.
 *
 * Source: gcc, libgcc/unwind-dw2.c (uw_install_context) and
 * config/i386/i386.cc (ix86_expand_epilogue, style 2).
 */
#ifndef LIB_UNWIND_X86_64_INSTALL_H
#define LIB_UNWIND_X86_64_INSTALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/unwind/arch_x86_64.h"

/* What is stored on the way: the handler's address, and a spilled register. */
#define X86_64_INSTALL_STORES 4

struct x86_64_install {
	/* Up to n bytes of code at addr; eight bytes of the stack. */
	size_t (*code)(void *ctx, uint64_t addr, uint8_t *bytes, size_t n);
	bool (*word)(void *ctx, uint64_t addr, uint64_t *ret);
	void *ctx;

	/* By DWARF number; before: the thread's, after: the handler's. */
	uint64_t r[X86_64_N_REGS];
	uint32_t known; /* bit n: r[n] is valid */

	/*
	 * Where in memory the handler's CFA and address are, by the call that
	 * tells debuggers of them (_Unwind_DebugHook). 0: there was none, or
	 * they are not in memory.
	 */
	uint64_t cfa_from, pc_from;
	uint32_t steps; /* instructions that were read */

	struct {
		uint64_t addr, value;
	} stored[X86_64_INSTALL_STORES];
	size_t n_stored;
	uint64_t loaded_from[X86_64_N_REGS];
};

/*
 * From r[X86_64_RIP] to the jump. False, and the registers are of no use, if
 * the code does not lead there or does anything else on its way. This hangs on
 * the code alone. Registers may be unknown at the end, r[X86_64_RIP] too.
 */
bool x86_64_install_run(struct x86_64_install *m);

/* Is the code there a function that does nothing: _Unwind_DebugHook? */
bool x86_64_install_is_hook(const uint8_t *code, size_t n);
#define X86_64_INSTALL_HOOK_MAX 16

#endif
