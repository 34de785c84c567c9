/*
 * The chunks that unwind makes of a target's records for one reader. A struct
 * chunks belongs either to the target's session, whose chunks go to Sentry, to
 * files and to Spotlight, or to a recording, whose chunks go to the user who
 * asked for it (daemon/broker/control/record.h). A target has one session and up to
 * MSG_RECORDS_MAX recordings; each of them gets every record of the target.
 *
 * A thread has a number of its own in each struct chunks
 * (daemon/unwind/thread_keys.h). The functions return 0, or an error of aggregate_*
 * where the comment names no other.
 */
#ifndef DAEMON_UNWIND_CHUNKS_H
#define DAEMON_UNWIND_CHUNKS_H

#include "daemon/msg/msg_unwind.h"
#include "daemon/unwind/program.h"
#include "daemon/unwind/thread_keys.h"
#include "lib/aggregate/aggregate.h"
#include "lib/capture/sample.h"

struct chunks {
	struct chunks *next; /* another reader of the same target */
	uint32_t record;     /* msg_record_open.record; 0: the session's */
	/* The session's; a recording changes what its reader needs. */
	struct msg_session_open open;
	struct thread_keys keys;
	struct aggregate *aggregate;
	uint64_t began_ns; /* time of the records when a recording began */
	/*
	 * Time at which the first chunk ends; 0 before the first tick,
	 * UINT64_MAX once that chunk is closed.
	 */
	uint64_t first_end_ns;
};

/* Opens the chunks of a session, whose target runs the program p. */
must_check int chunks_open(struct chunks *c, const struct msg_session_open *open,
			   const struct program *p);
/*
 * Opens the chunks of a recording, which begins at time_ns of the records with
 * the threads and stacks that the session's chunks, from, have then. The caller
 * frees *ret by chunks_free.
 */
must_check int chunks_open_beside(const struct chunks *from, const struct msg_record_open *record,
				  uint64_t time_ns, struct chunks **ret);
/* Frees everything that c points to, but not c itself. Takes zeros. */
void chunks_fini(struct chunks *c);
void chunks_free(struct chunks *c); /* takes NULL */

/* The target runs the program p from here on. */
void chunks_exec(struct chunks *c, const struct program *p);

/*
 * Takes a RECORD_THREAD. The thread may get the number of one that has ended
 * (thread_keys.h), whose time ends at time_ns.
 */
must_check int chunks_thread(struct chunks *c, const struct record_thread *record,
			     uint64_t time_ns);

/*
 * Takes a RECORD_SAMPLE with the stack that the sample was unwound to; without
 * a stack (NULL) the sample counts as missed. A thread of which no
 * RECORD_THREAD came gets a number at time_ns.
 */
must_check int chunks_sample(struct chunks *c, const struct unwind_sample *sample, uint64_t time_ns,
			     const struct unwind_stack *stack);

/* Takes a RECORD_MISSED or a RECORD_EXIT. */
must_check int chunks_lose(struct chunks *c, const struct record *record);

/*
 * Takes a RECORD_WAITING. In a profile of processor time (cpu_only) the thread
 * has no stack from then on.
 */
must_check int chunks_wait(struct chunks *c, const struct record *record);

/* All threads of the target end at time_ns. */
must_check int chunks_exit(struct chunks *c, uint64_t time_ns);

/* Takes a RECORD_TICK. *ret_due: the chunk ought to be closed. */
must_check int chunks_tick(struct chunks *c, const struct record_tick *record, bool *ret_due);

/*
 * Closes the chunk at end_ns: *ret is valid until chunks_next, which is to be
 * called whatever this returns.
 */
must_check int chunks_close(struct chunks *c, uint64_t end_ns, struct profile *ret);
must_check int chunks_next(struct chunks *c);

#endif
