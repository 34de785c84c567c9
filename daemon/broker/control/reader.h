/*
 * The reader of a recording: a socket that a peer reads, and the chunks that wait for it. The
 * module copies the chunks into the socket in pieces (struct protocol_recorded), when the loop
 * finds the socket writable. It never waits for the peer. A chunk that the peer does not get is
 * counted as lost.
 *
 * The peer gets copies of the chunks, because the daemon's control group stays charged for memory
 * that the peer keeps: for the pages of a memfd that the peer holds open, and for the pages of a
 * pipe or a stream socket, which splice(2) moves into pipes of the peer. From a SOCK_SEQPACKET
 * socket splice(2) makes copies, and the peer cannot change how much the socket holds. The peer can
 * keep the socket open and not read it, and what the socket holds is still the daemon's memory. So
 * a reader is closed only after reader_waiting() has returned 0.
 *
 * Times are in nanoseconds, by any clock that does not go back.
 */
#ifndef DAEMON_BROKER_CONTROL_READER_H
#define DAEMON_BROKER_CONTROL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/loop.h"
#include "lib/base/util.h"
#include "lib/client/protocol.h"

/*
 * The maximum number of chunks that wait, each with a descriptor. An unwind process that was late
 * makes several chunks at once.
 */
#define READER_CHUNKS_MAX 8
/* A reader that takes no piece for this time loses the chunks that wait for it. */
#define READER_IDLE_NS (5 * NS_PER_SEC)

/* A chunk that waits. */
struct reader_chunk {
	int fd;
	uint32_t size;
	uint64_t memory; /* sealed_memory() */
};

struct reader {
	struct loop *loop;
	struct loop_source *source; /* NULL: no chunk waits */
	int fd;			    /* the broker's end of the socket; -1: not open */
	bool is_stopped;	    /* the peer has disconnected, or gets nothing more */
	uint32_t lost;		    /* chunks that the peer did not get */
	struct reader_chunk chunks[READER_CHUNKS_MAX]; /* the oldest first */
	size_t n_chunks;
	uint32_t at;	/* bytes of the first chunk that were sent */
	bool has_moved; /* a piece was sent since the last reader_check() */
	/*
	 * unread: how many bytes the peer had not read at the last reader_check(). moved_ns: when
	 * the peer has last read something, or when the first chunk that waits was added.
	 */
	uint64_t unread, moved_ns;
	uint64_t budget_full_ns; /* when the bucket of bytes is full (lib/base/token_bucket.h) */
};

/*
 * Makes the socket. loop must outlive the reader, which must not move in memory. *ret_fd is the
 * peer's end, which is the caller's. Returns 0 or -errno: then nothing is open.
 */
must_check int reader_open(struct reader *r, struct loop *loop, int *ret_fd);
/*
 * Closes the socket and drops the chunks that wait. Has no effect if the reader is not open (fd
 * -1).
 */
void reader_close(struct reader *r);

/*
 * Adds a chunk: a sealed memfd of size bytes, which stays the caller's. The chunk is lost if
 * - its memory is larger than room, in bytes, or has holes;
 * - READER_CHUNKS_MAX chunks wait;
 * - the broker has copied as many bytes for this reader lately as it may (reader.c);
 * - a descriptor or memory is short, or the peer gets nothing more.
 */
void reader_add(struct reader *r, int fd, uint32_t size, uint64_t room, uint64_t now_ns);
/*
 * To be called at every turn: drops the chunks that wait if the peer has read nothing for
 * READER_IDLE_NS.
 */
void reader_check(struct reader *r, uint64_t now_ns);
/*
 * Sends the final message, with a text of fewer than PROTOCOL_TEXT_SIZE bytes. Returns 0; -EAGAIN
 * if chunks wait, or the socket is full: the caller calls the function again at a later turn;
 * -EPIPE if the peer has disconnected, or after reader_stop(); or another error of ipc_send().
 */
must_check int reader_end(struct reader *r, enum protocol_record_end end, const char *text);
/*
 * Sends a note. text and the returned values are as for reader_end(), but a note overtakes the
 * chunks that wait.
 */
must_check int reader_note(struct reader *r, const char *text);
/* Drops the chunks that wait. */
void reader_drop(struct reader *r);
/* Drops the chunks that wait. The peer gets nothing more from now on. */
void reader_stop(struct reader *r);

/*
 * Returns how many bytes of memory wait for the peer: chunks, and messages in the socket that the
 * peer has not read. 0 if the peer has closed the socket and no chunk waits.
 */
uint64_t reader_waiting(const struct reader *r);

#endif
