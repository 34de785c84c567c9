/*
 * Unwinds a stopped thread by an existing unwinder, libunwind-ptrace or libdwfl of elfutils,
 * and compares the result with the stack that lib/unwind has found. Used by
 * sentry-profd-oracle and by tests.
 *
 * No process of the daemon links these libraries, because they parse the files of the traced
 * process inside the tracer, which in the daemon has privileges.
 */
#ifndef DAEMON_ORACLE_ORACLE_H
#define DAEMON_ORACLE_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

enum oracle_kind { ORACLE_LIBUNWIND, ORACLE_LIBDWFL, ORACLE_N };

struct oracle;

struct oracle_stack {
	/* Leaf first. As unwind_frame.addr, but without a mapping's number in the upper bits. */
	uint64_t addrs[UNWIND_FRAMES_MAX];
	size_t n;
	const char *end; /* why the unwinder ended the stack, in its own words; a static string */
};

/* Returns "libunwind" or "libdwfl". */
const char *oracle_name(enum oracle_kind kind);

/* Makes an unwinder for the threads of process pid. Returns 0 or -ENOMEM. */
must_check int oracle_new(enum oracle_kind kind, int32_t pid, struct oracle **ret);
void oracle_free(struct oracle *o); /* accepts NULL */

/*
 * Drops the unwinder's copy of the maps, and what the unwinder has read from mapped files. Call it
 * when the maps of the process have changed. Accepts NULL.
 */
void oracle_forget(struct oracle *o);

/*
 * Unwinds a thread that is in a ptrace-stop; its tracer is the calling thread. The stack ends at
 * the root, at UNWIND_FRAMES_MAX frames, or at an error. After an error ret has the frames that
 * were found before it, possibly none, and ret->end says what the error is.
 */
void oracle_walk(struct oracle *o, int32_t tid, struct oracle_stack *ret);

/*
 * Returns true if both stacks have the same addresses. Also returns true if theirs begins with all
 * of ours, and a limit has cut off ours (UNWIND_END_CAPPED, UNWIND_END_MAX_FRAMES).
 *
 * If the stacks differ, returns false and stores the index of the first difference in *ret_first.
 * If one stack is the beginning of the other, this index is the length of the shorter one.
 */
bool oracle_agrees(const struct unwind_stack *ours, const struct oracle_stack *theirs,
		   size_t *ret_first);

#endif
