/*
 * A series: the chunks that one reader of a target gets, one after another.
 *
 * The reader is either the target's session, whose chunks go to Sentry, to files
 * and to Spotlight, or a recording, whose chunks go to the user who asked for it
 * (daemon/broker/control/recordings.h). A target has one session and up to
 * MSG_RECORDS_MAX recordings. Each of them has a series, and every record of the
 * target is added to every series (daemon/unwind/stream.c).
 *
 * A series joins an aggregate with the numbers that the target's threads have in
 * its chunks (daemon/unwind/thread_keys.h). Functions return 0 or -ENOMEM where the
 * comment says nothing else. Times are those of records, in ns.
 */
#ifndef DAEMON_UNWIND_SERIES_H
#define DAEMON_UNWIND_SERIES_H

#include "daemon/msg/msg_unwind.h"
#include "daemon/unwind/program.h"
#include "daemon/unwind/thread_keys.h"
#include "lib/aggregate/aggregate.h"
#include "lib/capture/sample.h"

struct series {
	struct series *next; /* of another reader of the same target */
	uint32_t record;     /* msg_record_open.record; 0: the reader is the session */
	/* The session's options; a recording has a changed copy. */
	struct msg_session_open open;
	struct thread_keys keys;
	struct aggregate *aggregate;
	uint64_t began_ns; /* beginning of a recording; 0 for a session */
	/*
	 * End of the first chunk: 0 before the first tick, UINT64_MAX after that
	 * chunk is due.
	 */
	uint64_t first_end_ns;
};

/* Opens the series of a session, whose target runs the program p. */
must_check int series_open(struct series *c, const struct msg_session_open *open,
			   const struct program *p);
/*
 * Opens the series of a recording, which begins at time_ns with the threads and
 * stacks that the session's series, from, has then. The caller frees *ret by
 * series_free().
 */
must_check int series_open_beside(const struct series *from, const struct msg_record_open *record,
				  uint64_t time_ns, struct series **ret);
/* Frees everything that c points to. c may be zero. */
void series_fini(struct series *c);
void series_free(struct series *c); /* c may be NULL */

/* The target runs the program p from now on. */
void series_exec(struct series *c, const struct program *p);

/*
 * Adds a RECORD_THREAD. The thread may get the number of a thread that has ended
 * (daemon/unwind/thread_keys.h); that thread's time then ends at time_ns.
 */
must_check int series_thread(struct series *c, const struct record_thread *record,
			     uint64_t time_ns);

/*
 * Adds a RECORD_SAMPLE with its unwound stack. Without a stack (NULL) the sample
 * counts as missed. A thread that had no RECORD_THREAD gets a number.
 */
must_check int series_sample(struct series *c, const struct unwind_sample *sample, uint64_t time_ns,
			     const struct unwind_stack *stack);

/* Adds a RECORD_MISSED. */
must_check int series_missed(struct series *c, const struct record *record);

/* Adds a RECORD_EXIT. */
must_check int series_exit(struct series *c, const struct record *record);

/*
 * Adds a RECORD_WAITING. In a profile of CPU time (cpu_only) the thread has no
 * stack from then on.
 */
must_check int series_waiting(struct series *c, const struct record *record);

/* Ends all threads of the target at time_ns. */
must_check int series_exit_all(struct series *c, uint64_t time_ns);

/* Adds a RECORD_TICK. Returns true if the chunk ought to be closed (aggregate_tick()). */
must_check bool series_tick(struct series *c, const struct record_tick *record);

/*
 * series_close() closes the chunk at end_ns; *ret is valid until series_next(). The
 * caller calls series_next() next, whatever series_close() returns.
 */
must_check int series_close(struct series *c, uint64_t end_ns, struct profile *ret);
must_check int series_next(struct series *c);

#endif
