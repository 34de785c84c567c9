/*
 * Calls that may come back with a part of what was asked for because a signal
 * was pending, or a stop of ours: what was asked, and the call for the rest.
 *
 * Only calls are here that come back with a part for no other reason, or for
 * which running the rest does no harm then: it returns at once, with an error
 * or nothing. recv(2) without MSG_WAITALL, splice(2) from a file, tee(2) and
 * vmsplice(2) give what is there; the rest of these would wait for ever.
 * A wait that came back with nothing in its result is a part as well.
 * Sources: pipe(7), send(2), recv(2), recvmmsg(2), sendfile(2), getrandom(2)
 * and the kernel's files named at each.
 *
 * Nothing is written to the target's memory: what cannot be said in
 * registers is done piece by piece.
 */
#ifndef LIB_CAPTURE_RESTART_PARTIAL_H
#define LIB_CAPTURE_RESTART_PARTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/ptrace/arch.h"
#include "lib/capture/proc/descriptor.h"

struct partial {
	uint32_t tid;
	int pagemap_fd; /* see lib/capture/proc/memory.h */
	/* As the call came back. */
	struct user_regs_struct regs;
	long nr;
	uint64_t whole;		   /* bytes, or messages: what was asked for */
	uint64_t done;		   /* of these */
	enum descriptor_kind file; /* where that decides */
};

/* A call for the rest, or for a piece of it. */
struct partial_call {
	long nr;
	uint64_t arguments[ARCH_ARGUMENTS];
	bool counts;	/* its result is to be added to what is done */
	uint64_t asked; /* that result, if it does all; if it counts */
};

/*
 * True if the call that a stopped thread was taken out of came back with a part
 * and can be gone on with. regs, tid and pagemap_fd are the caller's; the rest
 * is filled in. Most calls are told by their number alone; else memory of the
 * thread is read and its descriptors are looked at, which opens nothing.
 */
bool partial_find(struct partial *p);

/*
 * True if the calls for the rest are the first one again with no argument
 * changed but its address and its size: what a seccomp filter has let through
 * once, unless it names a buffer or a size (docs/SAFETY.md).
 */
bool partial_is_alike(const struct partial *p);

/* True if it may have come back because its socket's timeout was over. */
bool partial_is_on_socket(const struct partial *p);

/* The next call; false if there is none, or its arguments cannot be read. */
bool partial_next(const struct partial *p, struct partial_call *ret);

#endif
