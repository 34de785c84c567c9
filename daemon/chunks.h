/*
 * The chunks that are made of a target's records for one reader: those of the
 * session, which go to Sentry and to files, or those of a recording
 * (daemon/record.h), which a user has asked for. A target has one set of the
 * former and up to MSG_RECORDS_MAX of the latter; every record goes to all.
 *
 * Threads have numbers of their own in each (daemon/thread_keys.h). Errors are
 * those of aggregate_*, where nothing else is said.
 */
#ifndef DAEMON_CHUNKS_H
#define DAEMON_CHUNKS_H

#include "daemon/msg.h"
#include "daemon/program.h"
#include "daemon/thread_keys.h"
#include "lib/aggregate/aggregate.h"
#include "lib/capture/sample.h"

struct chunks {
	struct chunks *next; /* of the same target */
	uint32_t record;     /* msg_record_open.record; 0: the session's */
	struct msg_session_open open; /* as for the session, of this reader */
	struct thread_keys keys;
	struct aggregate *aggregate;
	uint64_t began_ns; /* a recording's: when it was asked for */
	/* When the first chunk ends; 0: it has not begun, UINT64_MAX: it has.
	 */
	uint64_t first_end_ns;
};

/* Of a session that begins, whose first program is p. */
must_check int chunks_open(struct chunks *c,
			   const struct msg_session_open *open,
			   const struct program *p);
/*
 * Of a recording that begins now, at time_ns of the records, beside the chunks
 * of from. *ret is to be freed by chunks_free.
 */
must_check int chunks_open_beside(const struct chunks *from,
				  const struct msg_record_open *record,
				  uint64_t time_ns, struct chunks **ret);
/* Frees what c has, not c. Takes zeros. */
void chunks_fini(struct chunks *c);
void chunks_free(struct chunks *c); /* takes NULL */

/* The target runs the program p from here on. */
void chunks_exec(struct chunks *c, const struct program *p);

/* RECORD_THREAD. It may go on as one that has ended, at time_ns. */
must_check int chunks_thread(struct chunks *c,
			     const struct record_thread *record,
			     uint64_t time_ns);

/*
 * RECORD_SAMPLE, with the stack that it was unwound to; NULL: it counts as
 * missed. One without a RECORD_THREAD gets a number at time_ns.
 */
must_check int chunks_sample(struct chunks *c,
			     const struct unwind_sample *sample,
			     uint64_t time_ns,
			     const struct unwind_stack *stack);

/* RECORD_MISSED or RECORD_EXIT. */
must_check int chunks_lose(struct chunks *c, const struct record *record);

/* RECORD_WAITING; in a profile of processor time it has no stack then. */
must_check int chunks_wait(struct chunks *c, const struct record *record);

/* All threads are gone. */
must_check int chunks_exit(struct chunks *c, uint64_t time_ns);

/* RECORD_TICK. *ret_due: the chunk ought to be closed. */
must_check int chunks_tick(struct chunks *c, const struct record_tick *record,
			   bool *ret_due);

/*
 * Closes the chunk at end_ns: *ret is valid until chunks_next, which is to be
 * called whatever this returns.
 */
must_check int chunks_close(struct chunks *c, uint64_t end_ns,
			    struct profile *ret);
must_check int chunks_next(struct chunks *c);

#endif
