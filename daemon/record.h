/*
 * Recordings: profiles of a process for those who ask for them on the daemon's
 * socket (sentry-profctl record and top), beside what Sentry and files get,
 * which does not change. unwind makes their chunks (daemon/chunks.h), and each
 * is passed on at once, on a socket of the recording: nothing is kept. A reader
 * who is slow loses chunks, which are counted.
 *
 * A recording is of an instance. It outlives its runs and unwind processes, and
 * ends with the process. An instance that is not profiled for Sentry has a run
 * for its recordings alone (target.is_for_records).
 */
#ifndef DAEMON_RECORD_H
#define DAEMON_RECORD_H

#include "daemon/control.h"

struct broker;
struct recording;
struct target;

/* PROTOCOL_RECORD and PROTOCOL_WATCH; the socket is that of *ret. */
void record_ask(struct broker *b, const struct control_peer *peer,
		const struct protocol_request *m, struct control_answer *ret);

/* The peer wants no more of its recordings: their last chunks come. */
void records_finish(struct broker *b, const struct control_peer *peer);
/* The peer is gone, and its recordings are wanted by nobody. */
void records_gone(struct broker *b, const struct control_peer *peer);

/* What unwind says of a recording of its target t; none is no fault. */
must_check int records_chunk(const struct target *t, uint32_t record,
			     uint64_t size, int fd);
void records_lost(const struct target *t, uint32_t record);
void records_closed(const struct target *t, uint32_t record);

/*
 * At every turn, after targets_check: asks unwind for those that it can be
 * asked for, and ends those that are over.
 */
void records_check(struct broker *b);

/*
 * At the end of a turn, before instances_sweep: frees those that are over. The
 * only place that takes one out of the list.
 */
void records_sweep(struct broker *b);

#endif
