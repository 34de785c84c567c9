#include "lib/unwind/walk/step.h"

#include "lib/unwind/cpu.h"
#include "lib/unwind/cpu/x86_64_path.h"
#include "lib/unwind/space/code.h"
#include "lib/unwind/walk/rule_step.h"

#define SP CPU_SP
#define FP CPU_FP
#define PC CPU_PC
#define RA CPU_RA

#define BIT(n) (UINT64_C(1) << (n))

/* Bytes. Assembly that aligns its stack needs it for registers of 32 bytes or more. */
#define STACK_ALIGNED 32

/* The cost of a step of leads_to_root(), in units of walk.guess_cost. */
#define CONFIRM_COST 8u

/* The cost of code_installs_handler(), in units of walk.guess_cost. */
#define INSTALLS_COST 256u

/*
 * Returns true if the code at f has put an exception handler's registers, or some of them, where
 * the rule looks for the caller's: a function of libgcc does so just before it jumps to the
 * handler. Also true if too much code has been read.
 */
static bool installs_handler(struct walk *w, const struct walk_frame *f)
{
	if (w->guess_cost + INSTALLS_COST > WALK_GUESS_COST_MAX)
		return true;
	w->guess_cost += INSTALLS_COST;
	return code_installs_handler(w->space, walk_next_pc(f));
}

/*
 * Moves f by the rule of p, which has may_install_handler (rules/rows.h): such a function may
 * replace the registers that it has saved by those of an exception handler, to which it then
 * jumps. Returns UNWIND_END_NO_CFI if the code has replaced them before f's address, or if too
 * much code has been read.
 */
static enum unwind_end try_installing_rule(struct walk *w, struct walk_frame *f,
					   const struct pc_info *p)
{
	enum unwind_end end;

	if (installs_handler(w, f))
		return UNWIND_END_NO_CFI;
	end = walk_by_rule(w, f, p);
	/* The step depended on the code, too. */
	w->step.is_simple = false;
	return end;
}

/* Moves f by the rule of p, which must not be RULE_CFA_NONE. */
static inline enum unwind_end try_rule(struct walk *w, struct walk_frame *f,
				       const struct pc_info *p)
{
	const struct rule *rule = p->rule;

	if (rule->cfa == RULE_CFA_FULL ? p->rows->full[rule->cfa_offset].may_install_handler
				       : rule->may_install_handler)
		return try_installing_rule(w, f, p);
	return walk_by_rule(w, f, p);
}

/*
 * Restores the registers that the kernel stored for rt_sigreturn(2). sp is behind the return
 * address of the handler.
 */
static enum unwind_end step_sigreturn(struct walk *w, struct walk_frame *f)
{
	struct frame_regs regs = {.known = BIT(CPU_N_REGS) - 1};

	for (unsigned int reg = 0; reg < CPU_N_REGS; reg++) {
		uint64_t at = f->regs.r[SP] + cpu_sigframe_offset(reg);

		if (!walk_read_word(w, at, &regs.r[reg]))
			return walk_unreadable(w, f, at, 8);
	}
	f->regs = regs;
	return walk_enter_interrupted(w, f);
}

/*
 * Returns true if f is the trampoline of rt_sigreturn(2): a handler returns to it, or the pc is in
 * it, at the system call or at the instruction before.
 */
static bool is_sigreturn(struct walk *w, const struct walk_frame *f)
{
	/* sizes of the instruction before the system call; 0: at the trampoline's start */
	static const uint8_t sizes[] = {0, 4, 5, 7};

	if (!f->is_leaf && !f->interrupted)
		return code_is_sigreturn(w->space, f->addr);
	for (size_t i = 0; i < array_size(sizes); i++)
		if (code_is_sigreturn(w->space, walk_next_pc(f) - sizes[i]))
			return true;
	return false;
}

/*
 * Returns true if the word next, which the frame at fp has saved, may be the frame pointer of a
 * caller that continues at ra.
 *
 * If the caller is itself unwound by its frame pointer, next is above fp, or 0 in the outermost
 * frame. A caller whose CFI counts from the stack pointer, or whose code is followed, may use the
 * register for anything: most programs of Debian do, which call code that LLVM has generated. Then
 * a call must end at ra, or ra be the trampoline of a signal handler.
 */
static bool may_be_callers(struct walk *w, uint64_t fp, uint64_t next, uint64_t ra)
{
	const struct pc_info *p;
	uint64_t target;

	if (next == 0 || next > fp)
		return true;
	if (ra == 0)
		return false;
	p = pc_info_at(w->space, ra - 1);
	if (!p->image || p->rule->cfa == RULE_CFA_FP)
		return false;
	switch (code_call_before(w->space, ra, &target)) {
	case CODE_CALL_DIRECT:
	case CODE_CALL_INDIRECT:
		return true;
	case CODE_CALL_NONE:
		return code_is_sigreturn(w->space, ra);
	case CODE_CALL_NORETURN:
	case CODE_CALL_UNKNOWN:
		return false;
	}
	return false;
}

/*
 * Moves f by the frame pointer, if the register holds one: it points to the word that the caller
 * had in the register, and the return address is above. generated: pc_info_is_generated().
 */
static enum unwind_end step_frame_pointer(struct walk *w, struct walk_frame *f, bool generated)
{
	uint64_t *r = f->regs.r;
	uint64_t fp = r[FP];
	enum unwind_end end;
	uint64_t next;
	uint64_t ra;

	if (!(f->regs.known & BIT(FP)))
		return UNWIND_END_UNKNOWN_REGISTER;
	/*
	 * The outermost frame: psABI, 3.4.1, initial stack and registers. Generated code is never
	 * outermost; without frame pointers it may have any value in the register.
	 */
	if (fp == 0 && !f->is_leaf && !generated)
		return UNWIND_END_ROOT;
	if (fp % 8 != 0 || fp < r[SP] || !walk_read_word(w, fp, &next) ||
	    !walk_read_word(w, fp + 8, &ra))
		return UNWIND_END_NO_CFI;
	ra = cpu_return_address(ra);
	if ((ra != 0 && !unwind_space_covers(w->space, ra - 1)) || !may_be_callers(w, fp, next, ra))
		return UNWIND_END_NO_CFI;
	r[SP] = fp + 16;
	r[FP] = next;
	r[PC] = ra;
	f->regs.known = BIT(SP) | BIT(PC) | BIT(FP);
	end = walk_enter(w, f, ra, true);
	/* On aarch64 the pair may be anywhere in the caller's frame. */
	f->sp_is_minimum = CPU_LINK_REGISTER && end == WALK_ON;
	return end;
}

/*
 * Moves f by the offsets from sp of the return address and the saved frame pointer. On a processor
 * with a link register the return address is in that register.
 */
static enum unwind_end step_by_offsets(struct walk *w, struct walk_frame *f, uint32_t ra_at,
				       uint32_t fp_at)
{
	struct rule rule = {.cfa = RULE_CFA_SP};
	enum unwind_end end;

	if (CPU_LINK_REGISTER) {
		rule.ra = RULE_RA_SAME;
	} else {
		rule.cfa_offset = (int32_t)ra_at + 8;
		rule.ra_offset = -8;
	}
	if (fp_at != X86_64_PATH_FP_SAME) {
		rule.fp = RULE_FP_SAVED;
		rule.fp_offset = (int32_t)fp_at - rule.cfa_offset;
	}
	end = walk_by_simple_rule(w, f, &rule, NULL);
	w->step.is_simple = false;
	if (end == WALK_ON)
		f->by_heuristic = true;
	return end;
}

/* Returns true if the return address still is in its register, where the call left it. */
static bool is_just_called(struct walk *w, const struct walk_frame *f)
{
	uint64_t ra;

	if (!CPU_LINK_REGISTER)
		return false;
	ra = cpu_return_address(f->regs.r[RA]);
	if (code_is_stub(w->space, walk_next_pc(f)))
		return true;
	return walk_addr_is_pc(f) && (f->regs.known & BIT(RA)) &&
	       unwind_space_covers(w->space, ra - 1) &&
	       code_may_call(w->space, ra, walk_next_pc(f), CODE_LEAF_MAX);
}

/*
 * Compares the path from the start of the function to f with the path from f to a ret: both must
 * find the return address at the same offset.
 */
enum agreement { AGREES, DIFFERS, UNKNOWN };

static enum agreement agrees_from(struct walk *w, uint64_t start, uint64_t at,
				  const struct code_path *path, uint32_t *budget)
{
	struct code_path there;

	if (!code_path_from_start(w->space, start, at, budget, &there))
		return UNKNOWN;
	return there.ra == path->ra ? AGREES : DIFFERS;
}

/*
 * Returns true if the walk from the caller that the path finds reaches the root, or the end of a
 * capped copy. Paths of those further frames are not confirmed in this way.
 */
static bool leads_to_root(struct walk *w, struct walk_frame f, const struct code_path *path,
			  uint32_t *budget)
{
	const uint64_t top = w->top;
	const struct walk_step step = w->step;
	enum unwind_end end;

	if (w->confirming)
		return false;
	w->guess_cost = WALK_GUESS_COST_MAX - *budget;
	w->confirming = true;
	end = step_by_offsets(w, &f, path->ra, path->fp);
	while (end == WALK_ON && w->guess_cost + CONFIRM_COST <= WALK_GUESS_COST_MAX) {
		w->guess_cost += CONFIRM_COST;
		end = step_to_caller(w, &f);
	}
	w->confirming = false;
	*budget = WALK_GUESS_COST_MAX - w->guess_cost;
	/* Bytes that only this walk reads do not count as needed. */
	w->top = top;
	w->step = step;
	w->missing = 0;
	w->second = 0;
	return end == UNWIND_END_ROOT || end == UNWIND_END_CAPPED;
}

/*
 * Returns true if the path agrees with the function's start. The start is the target of the call
 * before the return address, or the symbol's. If it is unknown, and another function may be behind
 * a call on the path, the walk has to reach the root.
 */
static bool agrees(struct walk *w, const struct walk_frame *f, uint64_t at, uint64_t ra,
		   const struct code_path *path, uint32_t *budget)
{
	enum agreement agreement = UNKNOWN;
	uint64_t start = 0;

	switch (code_call_before(w->space, ra, &start)) {
	case CODE_CALL_NONE: /* a signal handler, which returns to the trampoline */
		return code_is_sigreturn(w->space, ra);
	case CODE_CALL_NORETURN:
	case CODE_CALL_UNKNOWN:
	case CODE_CALL_INDIRECT:
		break;
	case CODE_CALL_DIRECT:
		agreement = agrees_from(w, start, at, path, budget);
	}
	if (agreement == UNKNOWN) {
		start = code_function(w->space, walk_lookup(f), budget);
		if (start != 0)
			agreement = agrees_from(w, start, at, path, budget);
	}
	if (agreement == UNKNOWN)
		return !path->has_call || leads_to_root(w, *f, path, budget);
	return agreement == AGREES;
}

static bool is_call(struct walk *w, uint64_t ra, uint64_t start)
{
	uint64_t target;

	switch (code_call_before(w->space, ra, &target)) {
	case CODE_CALL_NONE:
	case CODE_CALL_NORETURN:
	case CODE_CALL_UNKNOWN:
		return false;
	case CODE_CALL_INDIRECT:
		return true;
	case CODE_CALL_DIRECT:
		/* Another image calls through a PLT. */
		return target == start || !pc_info_same_image(w->space, target, start);
	}
	return false;
}

/*
 * Finds the path from the function's start, if no path leads to a ret: the function does not return
 * (exit(), while it runs handlers). The call before the return address must call this function.
 */
static bool find_path_from_start(struct walk *w, const struct walk_frame *f, uint64_t at,
				 uint32_t *budget, struct code_path *ret)
{
	const uint64_t start = code_function(w->space, walk_lookup(f), budget);
	uint64_t ra;

	if (start == 0 || !code_path_from_start(w->space, start, at, budget, ret) ||
	    !walk_read_word(w, f->regs.r[SP] + ret->ra, &ra) ||
	    !unwind_space_covers(w->space, ra - 1))
		return false;
	return is_call(w, ra, start);
}

/*
 * Makes the offsets of the path count from the stack pointer. Returns false if their base is
 * unknown, or no address above the stack pointer.
 */
static bool find_base(struct walk *w, const struct walk_frame *f, struct code_path *path)
{
	const uint64_t sp = f->regs.r[SP];
	uint64_t base = sp;

	switch (path->base) {
	case X86_64_BASE_SP:
		return true;
	case X86_64_BASE_WORD:
		if (!walk_read_word(w, sp + path->base_at, &base))
			return false;
		break;
	case X86_64_BASE_VALUE:
		/* The path's code aligns the stack to this at least, and has not called since. */
		if (!(f->regs.known & BIT(path->base_at)) || sp % STACK_ALIGNED != 0)
			return false;
		base = f->regs.r[path->base_at];
		break;
	}
	if (base < sp || base - sp >= X86_64_PATH_BASE_MAX || base % 8 != 0)
		return false;
	path->ra += (uint32_t)(base - sp);
	if (path->fp != X86_64_PATH_FP_SAME)
		path->fp += (uint32_t)(base - sp);
	return true;
}

/*
 * Moves f by a path that the code can take from f's pc to a ret (code_path_to_ret()) or, if there
 * is none, from the start of its function to the pc. Returns UNWIND_END_NO_CFI if there is no
 * path.
 *
 * Code behind a call may be that of another function, if the call does not return. Code that ends
 * the program or the thread with the value that the call returned is the root.
 */
static enum unwind_end step_by_path(struct walk *w, struct walk_frame *f)
{
	const bool is_pc = walk_addr_is_pc(f);
	const uint64_t at = walk_next_pc(f);
	uint32_t budget = WALK_GUESS_COST_MAX - w->guess_cost;
	struct code_path path;
	uint64_t ra;
	bool found;

	found = code_path_to_ret(w->space, at, &budget, &path);
	if (!is_pc && path.exits)
		return UNWIND_END_ROOT;
	found = found && find_base(w, f, &path) &&
		walk_read_word(w, f->regs.r[SP] + path.ra, &ra) &&
		unwind_space_covers(w->space, ra - 1) && agrees(w, f, at, ra, &path, &budget);
	if (!found)
		found = find_path_from_start(w, f, at, &budget, &path);
	w->guess_cost = WALK_GUESS_COST_MAX - budget;
	return found ? step_by_offsets(w, f, path.ra, path.fp) : UNWIND_END_NO_CFI;
}

/*
 * Returns true if f's return address is the start of a function: no call left it, but the program
 * wrote it there to be returned to, as makecontext(3) does. The byte before it has no rule, and the
 * frame pointer is that of the code which made the stack: such a stack ends here.
 */
static bool is_function_start(const struct walk *w, const struct walk_frame *f)
{
	const struct pc_info *p;
	uint64_t start;

	if (walk_addr_is_pc(f))
		return false;
	/* The byte before may be in another part of the rows (dwarf/cfi.h). */
	p = pc_info_at(w->space, f->addr);
	return p->image && rows_function(p->rows, f->addr - p->bias, &start) &&
	       start == f->addr - p->bias;
}

/*
 * Returns true if f is the root of a coroutine whose stack was made by code without CFI that calls
 * _exit() at the end (Boost.Context and its descendants).
 */
static bool is_coroutine_root(const struct walk *w, const struct walk_frame *f)
{
	uint64_t target;

	return !f->is_leaf && !f->interrupted &&
	       code_call_before(w->space, f->addr, &target) == CODE_CALL_NORETURN;
}

/*
 * Returns true if f is in the first instructions of a new thread. The new thread has the registers
 * of the thread that made it, also the frame pointer, and no return address on its stack.
 */
static bool is_new_thread(struct walk *w, const struct walk_frame *f)
{
	return walk_addr_is_pc(f) && cpu_syscall_returned_zero(f->regs.known, f->regs.r) &&
	       code_is_thread_start(w->space, walk_next_pc(f));
}

/*
 * Moves f to the caller where p has no rule: by the machine code or, if that does not show the
 * return address, by the frame pointer.
 */
static enum unwind_end guess_caller(struct walk *w, struct walk_frame *f, const struct pc_info *p)
{
	const bool generated = pc_info_is_generated(p);
	enum unwind_end end;
	bool is_pc;

	if (p->image) {
		if (is_new_thread(w, f))
			return UNWIND_END_ROOT;
		if (is_sigreturn(w, f)) {
			is_pc = walk_addr_is_pc(f);
			end = step_sigreturn(w, f);
			f->no_call_before = end != WALK_ON && !is_pc;
			return end;
		}
		if (is_function_start(w, f)) {
			f->no_call_before = true;
			f->by_heuristic = true;
			return UNWIND_END_ROOT;
		}
		if (is_coroutine_root(w, f))
			return UNWIND_END_ROOT;
		end = step_by_path(w, f);
		if (end != UNWIND_END_NO_CFI)
			return end;
		if (is_just_called(w, f))
			return step_by_offsets(w, f, 0, X86_64_PATH_FP_SAME);
	}
	return step_frame_pointer(w, f, generated);
}

enum unwind_end step_to_caller(struct walk *w, struct walk_frame *f)
{
	const struct pc_info *p = f->pc_info;

	if (p == NULL || p->addr != walk_lookup(f))
		p = pc_info_at(w->space, walk_lookup(f));
	w->step.is_simple = false;
	/* Clears what another candidate of a search may have set. */
	w->missing = 0;
	w->second = 0;
	f->no_call_before = false;
	if (p->rule->cfa != RULE_CFA_NONE)
		return try_rule(w, f, p);
	if (pc_info_is_unmapped(p))
		return UNWIND_END_NO_MAP;
	return guess_caller(w, f, p);
}
