/*
 * An event loop over epoll: descriptors and the functions to call when they
 * are readable. Level-triggered, single-threaded; the handlers of one round
 * run in the kernel's order, and a handler may remove any source, its own
 * included.
 */
#ifndef LIB_BASE_LOOP_H
#define LIB_BASE_LOOP_H

#include <stdint.h>

#include "lib/base/util.h"

struct loop;
struct loop_source;

/* fd is readable, closed by its peer, or in error: read it and see. */
typedef void (*loop_fn)(void *ctx);

must_check int loop_new(struct loop **ret);
void loop_free(struct loop *l); /* takes NULL; closes no descriptor of a user */

/*
 * Watches fd, which stays the caller's and must be removed before it is
 * closed. *ret_source is valid until loop_remove. Returns 0 or -errno.
 */
must_check int loop_add(struct loop *l, int fd, loop_fn fn, void *ctx,
			struct loop_source **ret_source);
/* Stops watching and frees the source; sets *source to NULL. Takes NULL. */
void loop_remove(struct loop *l, struct loop_source **source);

/*
 * Watches the source no more until loop_resume: for a handler that cannot read
 * now, for example because descriptors are short, and whose descriptor stays
 * readable. A paused source can be removed.
 */
void loop_pause(struct loop *l, struct loop_source *source);
/* Watches all paused sources again. To be called about once a second. */
void loop_resume(struct loop *l);

/*
 * Waits for up to timeout_ms (-1: without end) and runs the handlers of what
 * is ready. Returns 0 or epoll_wait's error; a signal is not an error.
 */
must_check int loop_run_once(struct loop *l, int timeout_ms);

#endif
