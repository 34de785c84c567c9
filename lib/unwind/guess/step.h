/*
 * One step from a frame to its caller, on a copied stack: by call frame
 * information where there is some, else by a guess.
 */
#ifndef LIB_UNWIND_GUESS_STEP_H
#define LIB_UNWIND_GUESS_STEP_H

#include "lib/unwind/walk/walk.h"

/*
 * From frame f to its caller, in f. Returns WALK_ON, or why there is none; f
 * is then as before, but for its registers. UNWIND_END_UNKNOWN_REGISTER with
 * the frame pointer unknown is what search.h may help with.
 */
enum unwind_end step_to_caller(struct walk *w, struct walk_frame *f);

#endif
