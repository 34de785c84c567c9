/*
 * A series: the chunks of one target for one reader, one after another. A chunk is the profile of
 * up to 60 s.
 *
 * The reader is either the target's session or a recording. The session exists as long as the
 * target is profiled; its chunks go to Sentry, to files, and to Spotlight, Sentry's local viewer. A
 * recording begins and ends by request of a user, to whom its chunks go
 * (daemon/broker/control/recordings.h). A target has one session and up to MSG_RECORDINGS_MAX
 * recordings at a time. Each of them has a series. daemon/unwind/stream.c adds every record of the
 * target (lib/capture/sample.h) to every series.
 *
 * A series consists of an aggregate (lib/aggregate/aggregate.h), which has the open chunk, and of
 * the keys under which the aggregate knows the threads (daemon/unwind/thread_keys.h).
 *
 * Functions return 0 or -ENOMEM unless their comment says otherwise. Times are those of records:
 * CLOCK_MONOTONIC, in ns.
 */
#ifndef DAEMON_UNWIND_SERIES_H
#define DAEMON_UNWIND_SERIES_H

#include "daemon/msg/msg_unwind.h"
#include "daemon/unwind/program.h"
#include "daemon/unwind/thread_keys.h"
#include "lib/aggregate/aggregate.h"
#include "lib/capture/sample.h"

struct functions;

struct series {
	struct series *next; /* the series of another reader of the same target; NULL: none */
	uint32_t recording;  /* msg_recording_open.recording; 0: the reader is the session */
	/*
	 * The session's options. In the series of a recording: a copy, with the recording's
	 * profiler id and length of chunks, and with the options of payloads for files
	 * (CHUNK_V2_FILE).
	 */
	struct msg_session_open open;
	struct thread_keys keys;
	struct aggregate *aggregate;
	uint64_t began_ns; /* beginning of a recording; 0 for a session */
	/*
	 * When the first chunk is due. The first chunk may be shorter than the others
	 * (first_chunk_us), so that hosts that start together do not send at the same moments. 0:
	 * no tick has come yet. UINT64_MAX: the first chunk has been due.
	 */
	uint64_t first_end_ns;
};

/*
 * Opens the series of a session, whose target runs the program p. Copies open; p's address space
 * must stay valid until series_exec() sets another program. Call series_fini() also after an error.
 * table: as in struct aggregate_options. Returns 0; -ENOMEM; or -EINVAL if open->chunk_us is 0 or
 * above 60 s.
 */
must_check int series_open(struct series *c, const struct msg_session_open *open,
			   const struct program *p, struct functions *table);
/*
 * Opens the series of a recording, which begins at time_ns with the threads and the stacks of from,
 * the session's series. from must have an open chunk. The caller frees *ret with series_free().
 * Returns 0; -ENOMEM; or -EINVAL if the length of the recording's chunks is 0 or above 60 s.
 */
must_check int series_open_recording(const struct series *from,
				     const struct msg_recording_open *recording, uint64_t time_ns,
				     struct series **ret);
/* Frees everything that c owns. Safe on a zero-initialised struct. */
void series_fini(struct series *c);
void series_free(struct series *c); /* also frees c; accepts NULL */

/*
 * Sets the program of the open chunk and of those that follow. Order of calls after an exec:
 * 1. series_exit_all().
 * 2. If program_ended() has returned false for the old program: series_exec() with the old program.
 *    It has no identity any more, so its last chunk is one of an unknown program.
 * 3. series_close() and series_next(), which end the chunk of the old program.
 * 4. series_exec() with the new program.
 */
void series_exec(struct series *c, const struct program *p);

/*
 * Adds a RECORD_THREAD. The new thread can take over the key of a thread that has ended
 * (thread_keys_assign()). If the new thread had another key before, that key ends at time_ns, the
 * time of the newest record.
 */
must_check int series_thread(struct series *c, const struct record_thread *record,
			     uint64_t time_ns);

/*
 * Adds a RECORD_SAMPLE with its unwound stack, at sample->time_ns. Without a stack (NULL) the
 * sample counts as missed. A thread that had no RECORD_THREAD gets a key. time_ns: as for
 * series_thread().
 */
must_check int series_sample(struct series *c, const struct unwind_sample *sample, uint64_t time_ns,
			     const struct unwind_stack *stack);

/* Adds a RECORD_MISSED. Ignores a thread without a key. */
must_check int series_missed(struct series *c, const struct record *record);

/* Adds a RECORD_EXIT. Ignores a thread without a key. */
must_check int series_exit(struct series *c, const struct record *record);

/*
 * Adds a RECORD_RUNNING, RECORD_READY or RECORD_WAITING. Ignores a thread without a key. In a
 * profile of CPU time (open.cpu_only) the thread has no stack while it is ready or waiting.
 */
must_check int series_state(struct series *c, const struct record *record);

/* Ends all threads of the target at time_ns. */
must_check int series_exit_all(struct series *c, uint64_t time_ns);

/*
 * Adds a RECORD_TICK. Returns true if the chunk is due, by aggregate_tick() or, for the first
 * chunk, by first_end_ns: the caller closes the chunk at record->settled_ns.
 */
must_check bool series_tick(struct series *c, const struct record_tick *record);

/*
 * series_close() closes the chunk at end_ns, or at the beginning of the recording if that is later.
 * *ret is the chunk's profile, which is valid until series_next(). series_next() opens the next
 * chunk. Call series_next() after each series_close(), also after an error, before any other
 * function but series_fini() and series_free().
 */
must_check int series_close(struct series *c, uint64_t end_ns, struct profile *ret);
must_check int series_next(struct series *c);

#endif
