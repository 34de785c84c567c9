/*
 * Guesses: find the caller of a frame whose address has no unwind rule, or a rule that may
 * not hold. They use the machine code at the address (space/code.h), or the frame pointer.
 *
 * by_heuristic is set in a caller that was found without a rule. guess_try_rule() checks a
 * rule before it uses the rule; it sets by_heuristic only if the stack pointer was a minimum. All
 * functions return as step_to_caller().
 */
#ifndef LIB_UNWIND_GUESS_GUESS_H
#define LIB_UNWIND_GUESS_GUESS_H

#include "lib/unwind/walk/walk.h"

/*
 * The limit of walk.guess_cost, in units of about 5 ns: about 0.7 ms for all guesses and
 * searches of a walk. One long search takes half of it. Memory can be made so that each frame
 * needs a search; such a walk ends when the limit is reached.
 */
#define GUESS_COST_MAX (1u << 17)

/*
 * Moves f by the rule of p, which has may_install_handler: the function replaces the saved
 * registers by those of an exception handler. Returns UNWIND_END_NO_CFI if the code has
 * replaced them before f's address.
 */
enum unwind_end guess_try_installing_rule(struct walk *w, struct walk_frame *f,
					  const struct pc_info *p);

/*
 * Moves f by the rule of p, which must not be RULE_CFA_NONE: by walk_by_rule(), or by
 * guess_try_installing_rule() if the rule has may_install_handler.
 */
static inline enum unwind_end guess_try_rule(struct walk *w, struct walk_frame *f,
					     const struct pc_info *p)
{
	const struct rule *rule = p->rule;

	if (rule->cfa == RULE_CFA_FULL ? p->rows->full[rule->cfa_offset].may_install_handler
				       : rule->may_install_handler)
		return guess_try_installing_rule(w, f, p);
	return walk_by_rule(w, f, p);
}

/*
 * Moves f to the caller where p has no rule: by the machine code or, if that does not show the
 * return address, by the frame pointer.
 */
enum unwind_end guess_caller(struct walk *w, struct walk_frame *f, const struct pc_info *p);

/*
 * Moves f by a path that the code can take from f's pc to a ret (code_path_to_ret()) or, if there
 * is none, from the start of its function to the pc. Returns UNWIND_END_NO_CFI if there is no
 * path.
 */
enum unwind_end guess_by_path(struct walk *w, struct walk_frame *f);

#endif
