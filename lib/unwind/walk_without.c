#include "lib/unwind/code.h"
#include "lib/unwind/search.h"
#include "lib/unwind/walk_steps.h"

/*
 * How far up a call is looked for, in words, what each takes, and what it takes
 * more to look for a call in code: as search.c has it.
 */
#define CALLS_MAX 1024
#define CALL_WORK 8
#define CALL_TRY  64

/* Code of a C library's entry that has no CFI (musl): _start and its C part. */
#define ENTRY_SIZE 64

/* What the kernel put on the stack for a handler; sp is behind its address. */
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
 * Is it rt_sigreturn's trampoline, to which a handler returns? Or is it there
 * itself, or about to make the call?
 */
static bool is_sigreturn(struct walk *w, const struct walk_frame *f)
{
	/* Of the instruction in front of the call. */
	static const uint8_t sizes[] = {0, 4, 5, 7};

	if (!f->is_leaf && !f->interrupted)
		return code_is_sigreturn(w->space, f->addr);
	for (size_t i = 0; i < array_size(sizes); i++)
		if (code_is_sigreturn(w->space, walk_lookup(f) - sizes[i]))
			return true;
	return false;
}

/*
 * Without CFI: a frame pointer, if that is what the register holds. It points
 * to the saved one of the caller, above which is the return address.
 */
static enum unwind_end step_frame_pointer(struct walk *w, struct walk_frame *f)
{
	uint64_t *r = f->regs.r;
	uint64_t fp = r[FP];
	enum unwind_end end;
	uint64_t next;
	uint64_t ra;

	if (!(f->regs.known & BIT(FP)))
		return UNWIND_END_UNKNOWN_REGISTER;
	/* "The deepest frame": psABI, 3.4.1, initial stack and registers. */
	if (fp == 0 && !f->is_leaf)
		return UNWIND_END_ROOT;
	if (fp % 8 != 0 || fp < r[SP] || !walk_read_word(w, fp, &next) ||
	    !walk_read_word(w, fp + 8, &ra))
		return UNWIND_END_NO_CFI;
	ra = cpu_return_address(ra);
	if (ra != 0 && !unwind_space_covers(w->space, ra - 1))
		return UNWIND_END_NO_CFI;
	/* To a caller without frame pointers that one may be anything. */
	if (next != 0 && next <= fp &&
	    !code_may_call(w->space, ra, walk_lookup(f), CODE_FRAMED_MAX))
		return UNWIND_END_NO_CFI;
	r[SP] = fp + 16;
	r[FP] = next;
	r[PC] = ra;
	f->regs.known = BIT(SP) | BIT(PC) | BIT(FP);
	end = walk_enter(w, f, ra, true);
	/* There is no saying where in its frame a function keeps the two. */
	f->sp_is_bound = CPU_LINK_REGISTER && end == WALK_ON;
	return end;
}

/* The return address is at sp + ra_at, or in its register. */
static enum unwind_end step_way_out(struct walk *w, struct walk_frame *f,
				    uint32_t ra_at, uint32_t fp_at)
{
	struct rule rule = {.cfa = RULE_CFA_SP};
	enum unwind_end end;

	if (CPU_LINK_REGISTER) {
		rule.ra = RULE_RA_SAME;
	} else {
		rule.cfa_offset = (int32_t)ra_at + 8;
		rule.ra_offset = -8;
	}
	if (fp_at != CPU_WAY_OUT_FP_SAME) {
		rule.fp = RULE_FP_SAVED;
		rule.fp_offset = (int32_t)fp_at - rule.cfa_offset;
	}
	end = walk_simple(w, f, &rule, NULL);
	w->step.usual = false;
	if (end == WALK_ON)
		f->by_heuristic = true;
	return end;
}

/* Nothing has been pushed since the call: its return address is on top. */
static bool is_just_called(struct walk *w, const struct walk_frame *f)
{
	uint64_t ra = cpu_return_address(f->regs.r[RA]);
	const uint64_t at = walk_lookup(f);
	uint32_t budget = SEARCH_WORK_MAX - w->searched;
	enum code_call kind;
	struct code_way way;
	uint64_t target;
	bool differs;

	if (CPU_LINK_REGISTER ? !(f->regs.known & BIT(RA))
			      : !walk_read_word(w, f->regs.r[SP], &ra))
		return false;
	if (!unwind_space_covers(w->space, ra - 1))
		return false;
	kind = code_call_before(w->space, ra, &target);
	/* A function without a name, to which a pointer led. */
	if (kind == CODE_CALL_INDIRECT && code_jumps_on(w->space, at))
		return true;
	/* One that is over may have been of this function, too. */
	differs = kind == CODE_CALL_DIRECT &&
		  code_way_there(w->space, target, at, &budget, &way) &&
		  way.ra != 0;
	w->searched = SEARCH_WORK_MAX - budget;
	return !differs && code_may_call(w->space, ra, at, CODE_LEAF_MAX);
}

/*
 * Does the code say how it goes on to its return? Behind a call, it may be that
 * of another function, where the call was one that does not come back: so what
 * is found there has to be behind a call, too, as far as code can be read.
 */
static bool has_way_out(struct walk *w, const struct walk_frame *f,
			uint32_t *ret_ra, uint32_t *ret_fp)
{
	const bool at_pc = f->is_leaf || f->interrupted;
	uint64_t ra, target;

	if (!code_way_out(w->space, walk_next_pc(f), ret_ra, ret_fp))
		return false;
	return at_pc || CPU_LINK_REGISTER ||
	       (walk_read_word(w, f->regs.r[SP] + *ret_ra, &ra) &&
		unwind_space_covers(w->space, ra - 1) &&
		code_call_before(w->space, ra, &target) != CODE_CALL_NONE);
}

/*
 * Does the way from the start of a function to here say the same as the way
 * back? Where it ends at the tables of switches, and here is behind one, that
 * is as far down, but for what was pushed since.
 */
enum agreement { AGREES, DIFFERS, UNKNOWN };

static enum agreement agrees_from(struct walk *w, uint64_t start, uint64_t at,
				  const struct code_way *way, uint32_t *budget)
{
	struct code_way there;

	if (!code_way_there(w->space, start, at, budget, &there))
		return UNKNOWN;
	if (!there.by_table)
		return there.ra == way->ra ? AGREES : DIFFERS;
	return there.ra == way->ra && start <= at &&
			       at - start < CODE_FRAMED_MAX
		       ? AGREES
		       : UNKNOWN;
}

/*
 * Does the frame pointer point to where the way back restores the caller's
 * from, right below the return address? Then the way is this function's own.
 */
static bool is_framed(const struct walk_frame *f, const struct code_way *way)
{
	return (f->regs.known & BIT(FP)) && way->fp != CPU_WAY_OUT_FP_SAME &&
	       way->ra == way->fp + 8 &&
	       f->regs.r[FP] == f->regs.r[SP] + way->fp;
}

/*
 * The function is the one that the call before the return address leads to, or
 * the one that the symbol says.
 */
static bool agrees(struct walk *w, const struct walk_frame *f, uint64_t at,
		   uint64_t ra, const struct code_way *way, uint32_t *budget)
{
	enum agreement agreement = UNKNOWN;
	uint64_t start = 0;

	switch (code_call_before(w->space, ra, &start)) {
	case CODE_CALL_NONE:
		return false;
	case CODE_CALL_LAST:
	case CODE_CALL_UNKNOWN:
	case CODE_CALL_INDIRECT:
		break;
	case CODE_CALL_DIRECT:
		agreement = agrees_from(w, start, at, way, budget);
	}
	if (agreement == UNKNOWN) {
		start = code_function(w->space, walk_lookup(f), budget);
		if (start != 0)
			agreement = agrees_from(w, start, at, way, budget);
	}
	/*
	 * It is not known where the function starts. What is behind a call may
	 * be of another one.
	 */
	if (agreement == UNKNOWN)
		return !way->has_call || is_framed(f, way);
	return agreement == AGREES;
}

bool walk_is_call(struct walk *w, uint64_t ra, uint64_t start)
{
	uint64_t target;

	switch (code_call_before(w->space, ra, &target)) {
	case CODE_CALL_NONE:
	case CODE_CALL_LAST:
	case CODE_CALL_UNKNOWN:
		return false;
	case CODE_CALL_INDIRECT:
		return true;
	case CODE_CALL_DIRECT:
		/* Through a PLT it comes from another file. */
		return target == start ||
		       space_place(w->space, target)->image !=
			       space_place(w->space, start)->image;
	}
	return false;
}

/*
 * By the way there alone, where none leads back: the function does not return
 * (exit(), with its handlers). The call has to be one of it for certain.
 */
static bool has_way_there(struct walk *w, const struct walk_frame *f,
			  uint64_t at, uint32_t *budget, struct code_way *ret)
{
	const uint64_t start = code_function(w->space, walk_lookup(f), budget);
	uint64_t ra;

	if (start == 0 || !code_way_there(w->space, start, at, budget, ret) ||
	    ret->by_table || !walk_read_word(w, f->regs.r[SP] + ret->ra, &ra) ||
	    !unwind_space_covers(w->space, ra - 1))
		return false;
	return walk_is_call(w, ra, start);
}

/*
 * Where not even a symbol says where the function starts: a word on the stack
 * that follows a call is the return address if the way from where that leads to
 * here comes to just its height.
 */
static bool has_call_there(struct walk *w, const struct walk_frame *f,
			   uint64_t at, uint32_t *budget, struct code_way *ret)
{
	const uint64_t sp = f->regs.r[SP];
	uint64_t ra, target;

	for (uint32_t i = 0; i < CALLS_MAX && *budget >= CALL_WORK; i++) {
		*budget -= CALL_WORK;
		if (!walk_read_word(w, sp + 8 * i, &ra))
			return false;
		if (!unwind_space_covers(w->space, ra - 1))
			continue;
		if (*budget < CALL_TRY)
			return false;
		*budget -= CALL_TRY;
		if (code_call_before(w->space, ra, &target) !=
			    CODE_CALL_DIRECT ||
		    target > at || at - target >= CODE_FRAMED_MAX)
			continue;
		if (code_way_there(w->space, target, at, budget, ret) &&
		    !ret->by_table && ret->ra == 8 * i)
			return true;
	}
	return false;
}

/*
 * As has_way_out, where code jumps before it returns. Where it ends the program
 * or the thread there is nothing to return to: the root.
 */
enum unwind_end walk_way_back(struct walk *w, struct walk_frame *f)
{
	const bool at_pc = f->is_leaf || f->interrupted;
	const uint64_t at = walk_next_pc(f);
	uint32_t budget = SEARCH_WORK_MAX - w->searched;
	struct code_way way;
	uint64_t ra;
	bool found;

	found = code_way_back(w->space, at, &budget, &way);
	if (!at_pc && way.exits)
		return UNWIND_END_ROOT;
	found = found && walk_read_word(w, f->regs.r[SP] + way.ra, &ra) &&
		unwind_space_covers(w->space, ra - 1) &&
		agrees(w, f, at, ra, &way, &budget);
	if (!found)
		found = has_way_there(w, f, at, &budget, &way) ||
			has_call_there(w, f, at, &budget, &way);
	w->searched = SEARCH_WORK_MAX - budget;
	return found ? step_way_out(w, f, way.ra, way.fp) : UNWIND_END_NO_CFI;
}

/*
 * A return address that no call has left: somebody put the start of a function
 * there, to be returned to (makecontext(3) does). No rule is in front of it.
 */
static bool is_planted(const struct walk_frame *f, const struct place *p)
{
	uint64_t start;

	return !f->is_leaf && !f->interrupted &&
	       rows_function(p->rows, f->addr - p->bias, &start) &&
	       start == f->addr - p->bias;
}

/*
 * So has who made a stack for a coroutine, of code without CFI that calls
 * _exit() (Boost.Context's, and what has been made of it).
 */
static bool is_last(const struct walk *w, const struct walk_frame *f)
{
	uint64_t target;

	return !f->is_leaf && !f->interrupted &&
	       code_call_before(w->space, f->addr, &target) == CODE_CALL_LAST;
}

/*
 * In its first instructions a thread has the registers of who has made it, the
 * frame pointer, too, and nothing on its stack that it would return to.
 */
static bool is_born(struct walk *w, const struct walk_frame *f)
{
	return (f->is_leaf || f->interrupted) &&
	       cpu_has_zero_of_call(f->regs.known, f->regs.r) &&
	       code_is_birth(w->space, walk_lookup(f));
}

enum unwind_end walk_without_cfi(struct walk *w, struct walk_frame *f,
				 const struct place *p)
{
	const struct image *i = p->image;
	uint32_t ra_at, fp_at;
	enum unwind_end end;
	uint64_t entry;
	bool at_pc;

	if (i) {
		entry = i->entry + p->bias;
		if (f->addr >= entry && f->addr - entry < ENTRY_SIZE)
			return UNWIND_END_ROOT;
		if (is_born(w, f))
			return UNWIND_END_ROOT;
		if (is_sigreturn(w, f)) {
			at_pc = f->is_leaf || f->interrupted;
			end = step_sigreturn(w, f);
			f->planted = end != WALK_ON && !at_pc;
			return end;
		}
		if (is_planted(f, p)) {
			end = walk_by_rule(w, f,
					   space_place(w->space, f->addr));
			f->planted = !f->interrupted;
			/* Where it would return to is no address: an argument.
			 */
			if (end == UNWIND_END_NO_MAP)
				end = UNWIND_END_ROOT;
			w->step.usual = false;
			return end;
		}
		if (is_last(w, f))
			return UNWIND_END_ROOT;
		if (has_way_out(w, f, &ra_at, &fp_at))
			return step_way_out(w, f, ra_at, fp_at);
		end = walk_way_back(w, f);
		if (end != UNWIND_END_NO_CFI)
			return end;
		if ((f->is_leaf || f->interrupted) && is_just_called(w, f))
			return step_way_out(w, f, 0, CPU_WAY_OUT_FP_SAME);
	}
	return step_frame_pointer(w, f);
}
