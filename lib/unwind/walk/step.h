/*
 * One step of a walk, from a frame to its caller: by the rule of its address if there is one
 * (walk/rule_step.h), otherwise by a guess.
 *
 * A guess uses the machine code at the address (space/code.h), or the frame pointer.
 *
 * walk_frame.by_heuristic marks a frame as uncertain. The step sets it in
 * - a caller that it found by a guess;
 * - a caller that it found by a rule that counts from the stack pointer, if the stack pointer was
 *   only known as a lower bound (walk_frame.sp_is_minimum);
 * - a root whose addr is the start of a function: the program wrote that address to a new stack as
 *   the return address, as makecontext(3) does.
 * The step does not set it in other callers that it found by a rule, nor in a caller that it found
 * by the registers that the kernel stored for a signal handler. walk_to_end() also sets it in a
 * caller for which search_frame_pointer() had to find the frame pointer.
 */
#ifndef LIB_UNWIND_WALK_STEP_H
#define LIB_UNWIND_WALK_STEP_H

#include "lib/unwind/walk/walk_state.h"

/*
 * Moves f to its caller and returns WALK_ON, or returns another value, the reason why no caller was
 * found: then addr and is_leaf of f are unchanged, but other members may have changed. After
 * WALK_ON, w->step says how the step found the caller (walk_state.h). After
 * UNWIND_END_UNKNOWN_REGISTER call search_frame_pointer() (search.h); if that returns true, try the
 * step again.
 */
enum unwind_end step_to_caller(struct walk *w, struct walk_frame *f);

#endif
