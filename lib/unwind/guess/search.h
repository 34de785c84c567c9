/*
 * Finds a frame pointer that is needed and not known.
 *
 * A thread that was sampled without a stop has only its stack pointer and pc.
 * Where a function keeps its frame by the frame pointer, that points to a pair
 * on the stack: the caller's frame pointer, and the return address. Pairs also
 * remain of calls that are over, so a pair is judged by the call before its
 * return address (does it call this function?), by the size that the function
 * says its frame has, and by whether the walk on from it comes to the thread's
 * start.
 */
#ifndef LIB_UNWIND_GUESS_SEARCH_H
#define LIB_UNWIND_GUESS_SEARCH_H

#include <stdbool.h>

#include "lib/unwind/walk/walk.h"

/*
 * Sets the frame pointer of f, whose step ended with an unknown register.
 * False if no candidate is good enough among those that were tried before
 * GUESS_WORK_MAX was reached; f is as before then.
 */
bool search_frame_pointer(struct walk *w, struct walk_frame *f);

#endif
