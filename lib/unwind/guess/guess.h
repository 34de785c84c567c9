/*
 * The caller of a frame where its call frame information does not say it, by
 * what the machine code there does, or by the frame pointer.
 */
#ifndef LIB_UNWIND_GUESS_GUESS_H
#define LIB_UNWIND_GUESS_GUESS_H

#include "lib/unwind/walk/walk.h"

/*
 * How much a walk may cost beside its frames, w->searched: some 0.7 ms for all
 * its searches together; a long one takes half of it. Memory that was made so
 * that each frame needs one ends the stack, with what it then lacks.
 */
#define GUESS_WORK_MAX (1u << 17)

/* All of these return as step_to_caller(). */

/* By the rule of p, whose function may be installing an exception's handler. */
enum unwind_end guess_by_installing_rule(struct walk *w, struct walk_frame *f,
					 const struct pc_info *p);

/* By the rule of p, unless the code has put it out of force. */
static inline enum unwind_end guess_by_rule(struct walk *w, struct walk_frame *f,
					    const struct pc_info *p)
{
	const struct rule *rule = p->rule;

	if (rule->cfa == RULE_CFA_FULL ? p->rows->full[rule->cfa_offset].may_install_handler
				       : rule->may_install_handler)
		return guess_by_installing_rule(w, f, p);
	return walk_by_rule(w, f, p);
}

/* Where p has no rule. */
enum unwind_end guess_caller(struct walk *w, struct walk_frame *f, const struct pc_info *p);

/* By the ways that the code at f can take to a ret; UNWIND_END_NO_CFI: none. */
enum unwind_end guess_by_path(struct walk *w, struct walk_frame *f);

#endif
