#include "lib/unwind/walk_install.h"

#include "lib/unwind/code.h"
#include "lib/unwind/code_read.h"
#include "lib/unwind/search.h"
#include "lib/unwind/walk_steps.h"
#include "lib/unwind/x86_64_context.h"
#include "lib/unwind/x86_64_install.h"

/* What reading an instruction costs of a walk's searches. */
#define INSTALL_STEP 16u

struct reader {
	struct walk *walk;
	struct space_mapping *mapping;
	const struct map *map;
};

static size_t read_code(void *ctx, uint64_t addr, uint8_t *bytes, size_t n)
{
	const struct reader *r = ctx;

	return code_read_kept(r->walk->space, r->mapping, r->map,
			      addr - r->mapping->bias, bytes, n);
}

static bool read_word(void *ctx, uint64_t addr, uint64_t *ret)
{
	const struct reader *r = ctx;

	return walk_read_word(r->walk, addr, ret);
}

/*
 * Is it in the call of the hook for debuggers? That changes no register: they
 * are as the frame before has them.
 */
static bool in_hook(struct reader *r, uint64_t ra)
{
	uint8_t code[X86_64_INSTALL_HOOK_MAX];
	uint64_t target;

	return code_call_before(r->walk->space, ra, &target) ==
		       CODE_CALL_DIRECT &&
	       x86_64_install_is_hook(code,
				      read_code(r, target, code, sizeof(code)));
}

/* To the handler with these registers: no call has led away from there. */
static enum unwind_end enter_handler(struct walk *w, struct walk_frame *f,
				     const uint64_t *r, uint32_t known)
{
	const uint32_t needed = BIT(X86_64_RSP) | BIT(X86_64_RIP);

	if ((known & needed) != needed ||
	    !unwind_space_covers(w->space, r[X86_64_RIP]))
		return UNWIND_END_NO_CFI;
	if (r[X86_64_RSP] < f->regs.r[SP] || r[X86_64_RSP] % 8 != 0)
		return UNWIND_END_BAD_CFA;
	memcpy(f->regs.r, r, X86_64_N_REGS * sizeof(*r));
	f->regs.known = known & (CPU_CALLEE_SAVED | needed);
	return walk_enter(w, f, r[X86_64_RIP] + CPU_PC_STEP, false);
}

/* By the code alone, so what is known is kept: does it do anything else? */
static enum walk_install run(struct reader *r, uint64_t pc,
			     struct x86_64_install *m)
{
	struct walk *w = r->walk;
	bool installs;
	uint8_t first;

	if (read_code(r, pc, &first, 1) < 1)
		return WALK_INSTALL_UNKNOWN;
	installs = x86_64_install_run(m);
	w->searched += (uint32_t)min_u64(m->steps * INSTALL_STEP,
					 SEARCH_WORK_MAX - w->searched);
	if (installs)
		return WALK_INSTALL_HANDLER;
	code_remember(w->space, &r->mapping->image->facts[FACTS_PLAIN],
		      pc - r->mapping->bias, 0);
	return WALK_INSTALL_NONE;
}

enum walk_install walk_install(struct walk *w, struct walk_frame *f,
			       enum unwind_end *ret)
{
	const bool at_pc = f->is_leaf || f->interrupted;
	const uint64_t pc = at_pc ? walk_lookup(f) : f->addr;
	struct reader r = {.walk = w};
	struct x86_64_install m = {
		.code = read_code,
		.word = read_word,
		.ctx = &r,
		.known = (uint32_t)f->regs.known,
	};
	struct x86_64_context context;
	enum walk_install found;
	bool by_registers = at_pc;
	uint32_t fact;

	r.mapping = code_mapping(w->space, pc, &r.map);
	if (r.mapping && table_get(&r.mapping->image->facts[FACTS_PLAIN],
				   pc - r.mapping->bias, &fact))
		return WALK_INSTALL_NONE;
	if (!r.mapping || w->searched >= SEARCH_WORK_MAX)
		return WALK_INSTALL_UNKNOWN;
	memcpy(m.r, f->regs.r, sizeof(m.r));
	m.r[X86_64_RIP] = pc;
	if (!at_pc && in_hook(&r, pc)) {
		m.known = BIT(X86_64_N_REGS) - 1;
		by_registers = true;
	}
	found = run(&r, pc, &m);
	if (found != WALK_INSTALL_HANDLER)
		return found;
	if (by_registers)
		*ret = enter_handler(w, f, m.r, m.known);
	else if (x86_64_context_read(m.cfa_from, m.pc_from, read_word, &r,
				     &context))
		*ret = enter_handler(w, f, context.r, context.known);
	else
		*ret = UNWIND_END_NO_CFI;
	return found;
}
