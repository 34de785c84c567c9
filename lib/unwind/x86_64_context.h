/*
 * Where an exception is going to be handled, by what libgcc has found out: its
 * struct _Unwind_Context, on the stack of the function that unwinds. While that
 * function's saved registers are being overwritten with the handler's, nothing
 * else tells them.
 *
 * Source: gcc, libgcc/unwind-dw2.c. The same since gcc 4.4.
 */
#ifndef LIB_UNWIND_X86_64_CONTEXT_H
#define LIB_UNWIND_X86_64_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/unwind/arch_x86_64.h"

struct x86_64_context {
	uint64_t r[X86_64_N_REGS]; /* by DWARF number */
	uint32_t known;		   /* bit n: r[n] is valid */
};

/*
 * The registers that the handler begins with. cfa_at, pc_at: where the
 * context's fields of these names are; word reads eight bytes of the stack.
 * False if there is no context there; pc and sp are known if there is.
 */
bool x86_64_context_read(uint64_t cfa_at, uint64_t pc_at,
			 bool (*word)(void *ctx, uint64_t addr, uint64_t *ret),
			 void *ctx, struct x86_64_context *ret);

#endif
