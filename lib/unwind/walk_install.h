/*
 * The step from a function of libgcc that installs an exception's handler. Its
 * call frame information speaks of who has thrown; the registers that it saved
 * are the handler's by then, or some of them.
 */
#ifndef LIB_UNWIND_WALK_INSTALL_H
#define LIB_UNWIND_WALK_INSTALL_H

#include "lib/unwind/walk.h"

enum walk_install {
	WALK_INSTALL_NONE,    /* it is elsewhere, by its address */
	WALK_INSTALL_UNKNOWN, /* the code can't be read, or too much was */
	WALK_INSTALL_HANDLER, /* it is there */
};

/*
 * Is f, in a function that ends by __builtin_eh_return, at its end, or in the
 * call in front of that which installs? Then f becomes the handler's frame, at
 * its first instruction, *ret is WALK_ON; or *ret is why it can't be told. Else
 * f is as before.
 */
enum walk_install walk_install(struct walk *w, struct walk_frame *f,
			       enum unwind_end *ret);

#endif
