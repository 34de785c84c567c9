/*
 * An event loop over epoll(7): calls a function when a descriptor is readable, or when it is
 * writable. The broker and capture run on it.
 *
 * A source is a descriptor with its handler. A descriptor has at most one source. The loop is
 * single-threaded and level-triggered: a handler is called in each round (loop_run_once()) in which
 * its descriptor is ready. The handlers of one round run in the kernel's order. A handler may add
 * sources and remove any source, its own included. The handler of a removed source is not called
 * any more, even if its descriptor was ready in this round.
 */
#ifndef LIB_BASE_LOOP_H
#define LIB_BASE_LOOP_H

#include <stdint.h>

#include "lib/base/util.h"

struct loop;
struct loop_source;

/*
 * A handler. Called when the descriptor is readable, closed by its peer, or in error. The handler
 * finds out which by reading from the descriptor. ctx: as passed to loop_add().
 */
typedef void (*loop_fn)(void *ctx);

/* Creates an empty loop. Returns 0, -ENOMEM, or the error of epoll_create1(2). */
must_check int loop_new(struct loop **ret);
/*
 * Frees the loop. Remove all sources first, or their memory leaks. Descriptors stay open. l may be
 * NULL.
 */
void loop_free(struct loop *l);

/*
 * Watches fd, which stays the caller's. *ret_source is valid until loop_remove(), which the caller
 * calls before it closes fd. Returns 0; -ENOMEM; -EEXIST if fd has a source already, for reading or
 * for writing; or another error of epoll_ctl(2).
 */
must_check int loop_add(struct loop *l, int fd, loop_fn fn, void *ctx,
			struct loop_source **ret_source);
/*
 * As loop_add(), for a descriptor that is to be written: fn is called while it is writable, closed
 * by its peer, or in error. Remove the source as soon as there is nothing to write, or fn is called
 * in each round.
 */
must_check int loop_add_writer(struct loop *l, int fd, loop_fn fn, void *ctx,
			       struct loop_source **ret_source);
/* Stops watching, frees the source and sets *source to NULL. *source may be NULL. */
void loop_remove(struct loop *l, struct loop_source **source);

/*
 * Stops watching the source until loop_resume() or loop_resume_source(). For a handler that cannot
 * read now, for example because the process has no free descriptor: the descriptor stays readable,
 * so the loop would call the handler in each round. A paused source can be removed.
 */
void loop_pause(struct loop *l, struct loop_source *source);
/* Watches all paused sources again. Call it about once a second if loop_pause() is in use. */
void loop_resume(struct loop *l);
/* Watches the source again, if it is paused. */
void loop_resume_source(struct loop *l, struct loop_source *source);

/*
 * Waits until a descriptor is ready, at most timeout_ms (-1: no limit), and calls the handlers.
 * Returns 0, also after timeout_ms or a signal, or the error of epoll_wait(2).
 */
must_check int loop_run_once(struct loop *l, int timeout_ms);

#endif
