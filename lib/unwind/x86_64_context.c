#include "lib/unwind/x86_64_context.h"

#include <stddef.h>

#include "lib/base/util.h"

/*
 * Offsets in the struct: it begins with a pointer for each register to where
 * its value is, or, where a byte says so, the value.
 */
#define CFA	 0x90
#define PC	 0x98
#define ARGS	 0xd0 /* to be taken from the stack, too */
#define BY_VALUE 0xd8

/* Arguments of a call that throws are hardly more. */
#define ARGS_MAX (1u << 20)

bool x86_64_context_read(uint64_t cfa_at, uint64_t pc_at,
			 bool (*word)(void *ctx, uint64_t addr, uint64_t *ret),
			 void *ctx, struct x86_64_context *ret)
{
	static const uint8_t regs[] = {X86_64_RBX,     X86_64_RBP,
				       X86_64_R12,     X86_64_R12 + 1,
				       X86_64_R12 + 2, X86_64_R12 + 3};
	const uint64_t start = cfa_at - CFA;
	uint64_t pc, cfa, args;

	if (cfa_at == 0 || pc_at != cfa_at + (PC - CFA) ||
	    !word(ctx, start + CFA, &cfa) || !word(ctx, start + PC, &pc) ||
	    !word(ctx, start + ARGS, &args) || args > ARGS_MAX)
		return false;
	ret->r[X86_64_RIP] = pc;
	ret->r[X86_64_RSP] = cfa + args;
	ret->known = 1u << X86_64_RIP | 1u << X86_64_RSP;
	for (size_t i = 0; i < array_size(regs); i++) {
		const unsigned int reg = regs[i];
		uint64_t at, by_value;

		if (word(ctx, start + 8 * reg, &at) &&
		    word(ctx, start + BY_VALUE + (reg & 8), &by_value) &&
		    (by_value >> 8 * (reg & 7) & 0xff) == 0 &&
		    word(ctx, at, &ret->r[reg]))
			ret->known |= 1u << reg;
	}
	return true;
}
