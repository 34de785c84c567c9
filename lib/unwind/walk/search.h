/*
 * Searches the stack for the frame pointer of a frame that needs it and does not know it.
 *
 * Of a thread that was sampled without a stop only the stack pointer and the pc are known.
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
 * Sets the frame pointer of f, whose step ended with an unknown register. Returns false, and
 * leaves f as it was, if no candidate is rated well enough before w->guess_cost reaches
 * WALK_GUESS_COST_MAX.
 */
bool search_frame_pointer(struct walk *w, struct walk_frame *f);

#endif
