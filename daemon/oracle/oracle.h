/*
 * What other unwinders see of a stopped thread: libunwind-ptrace and libdwfl
 * of elfutils. They read the files of a target and the live thread in this
 * process, so no process of the daemon links them; sentry-profctl and the
 * tests compare with them.
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

/* Addresses in the form of unwind_frame.addr. */
struct oracle_stack {
	uint64_t addrs[UNWIND_FRAMES_MAX];
	size_t n;
	const char *end; /* in its own words; a string that stays */
};

/* "libunwind", "libdwfl". */
const char *oracle_name(enum oracle_kind kind);

/* For the threads of process pid. Returns 0 or -ENOMEM. */
must_check int oracle_new(enum oracle_kind kind, int32_t pid, struct oracle **ret);
void oracle_free(struct oracle *o);

/* The process's maps have changed: what is kept of them is dropped. Takes NULL.
 */
void oracle_forget(struct oracle *o);

/* The stack of a thread that is in a ptrace-stop of this process's. */
void oracle_walk(struct oracle *o, int32_t tid, struct oracle_stack *ret);

/*
 * Are they the same? Where ours was cut short by a limit (capped, max_frames),
 * as far as it goes. Else *ret_first is the first frame that differs, which
 * one of them may not have.
 */
bool oracle_agrees(const struct unwind_stack *ours, const struct oracle_stack *theirs,
		   size_t *ret_first);

#endif
