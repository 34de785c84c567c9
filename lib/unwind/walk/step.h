/*
 * One step of a walk, from a frame to its caller: by the rule of its address if there is one
 * (walk/rule_step.h), otherwise by a guess.
 *
 * A guess uses the machine code at the address (space/code.h), or the frame pointer. It is made if
 * the address has no rule.
 *
 * by_heuristic (struct walk_frame) is set in a caller that was found by a guess, and in a frame
 * that is the root because no call left its return address (makecontext(3)). It is not set if the
 * caller was found by the registers that the kernel stored for a signal handler, nor if the caller
 * was found by a rule, with one exception: the stack pointer was known as a lower bound only
 * (sp_is_minimum), and the rule counts from the stack pointer.
 */
#ifndef LIB_UNWIND_WALK_STEP_H
#define LIB_UNWIND_WALK_STEP_H

#include "lib/unwind/walk/walk_state.h"

/*
 * Moves f to its caller and returns WALK_ON, or returns why there is no caller: then addr and
 * is_leaf of f are unchanged, but its registers may have changed. After
 * UNWIND_END_UNKNOWN_REGISTER with an unknown frame pointer, search_frame_pointer() may find it.
 */
enum unwind_end step_to_caller(struct walk *w, struct walk_frame *f);

#endif
