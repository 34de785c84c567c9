/*
 * Searches the stack for the frame pointer of a frame, if the step to its caller needs the frame
 * pointer and the walk does not know it: a thread that was sampled without a stop has only its
 * stack pointer and its pc in the sample.
 *
 * A frame pointer points to a pair on the stack: the caller's frame pointer and the return
 * address. Pairs also remain from calls that have returned, so each candidate is rated:
 * - Does a call to this function end at the return address?
 * - Is the frame as large as the code of the function says?
 * - Does the walk from there reach the root, or the end of the copy?
 */
#ifndef LIB_UNWIND_WALK_SEARCH_H
#define LIB_UNWIND_WALK_SEARCH_H

#include <stdbool.h>

#include "lib/unwind/walk/walk_state.h"

/*
 * Sets the frame pointer in f->regs and returns true. Call it when step_to_caller() has returned
 * UNWIND_END_UNKNOWN_REGISTER for f. Returns false, and leaves f as it was, if the frame pointer is
 * known, the stack pointer is outside of the first range of the copied stack (struct stack_bytes),
 * or no candidate is rated well enough. The search adds its cost to w->guess_cost, and ends at
 * WALK_GUESS_COST_MAX at the latest.
 */
bool search_frame_pointer(struct walk *w, struct walk_frame *f);

#endif
