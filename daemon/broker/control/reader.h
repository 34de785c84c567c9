/*
 * The reader of a recording: a socket that a peer reads, and the chunks that wait for it. The
 * module copies the chunks into the socket in pieces (struct protocol_recorded), when the loop
 * finds the socket writable. It never waits for the peer. A chunk that the peer does not get is
 * counted as lost.
 *
 * Why copies: the daemon's control group is charged for memory that the broker has allocated, for
 * as long as the peer keeps it. A malicious peer could keep much: a memfd by holding it open, and
 * the pages of a pipe or stream socket by moving them into pipes of its own with splice(2). From a
 * SOCK_SEQPACKET socket splice(2) only makes copies. So the peer can keep only what this socket
 * holds, by not reading it. The broker sets the size of the socket's buffer. The caller counts this
 * memory with reader_waiting(), and therefore closes a reader only when reader_waiting() returns 0.
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
/* A peer that reads nothing for this time loses the chunks that wait for it. */
#define READER_IDLE_NS (5 * NS_PER_SEC)

/* A chunk that waits. */
struct reader_chunk {
	int fd;		 /* a duplicate of the chunk's memfd */
	uint32_t size;	 /* bytes */
	uint64_t memory; /* sealed_memory() */
};

struct reader {
	struct loop *loop;
	struct loop_source *source; /* NULL: no chunk waits */
	int fd;			    /* the broker's end of the socket; -1: not open */
	bool is_stopped;	    /* reader_stop() was called, or the peer has disconnected */
	uint32_t lost;		    /* chunks that the peer did not get */
	struct reader_chunk chunks[READER_CHUNKS_MAX]; /* the oldest first */
	size_t n_chunks;
	uint32_t at;	/* bytes of the first chunk that were sent */
	bool has_moved; /* a piece was sent since the last reader_check() */
	/*
	 * unread: how many bytes of memory in the socket the peer had not read at the last
	 * reader_check(); 0 if no chunk waited then.
	 * moved_ns: the time of the last reader_check() that found progress (a piece was sent, or
	 * unread has changed). A chunk that is added while none waits sets moved_ns, too.
	 */
	uint64_t unread, moved_ns;
	uint64_t budget_full_ns; /* when the rate limit's bucket is full (token_bucket.h) */
};

/*
 * Makes the socket. loop must outlive the reader, which must not move in memory. *ret_fd is the
 * peer's end, which is the caller's. Returns 0 or -errno: then nothing is open.
 */
must_check int reader_open(struct reader *r, struct loop *loop, int *ret_fd);
/* Closes the socket, and calls reader_drop(). No effect if the reader is not open (fd -1). */
void reader_close(struct reader *r);

/*
 * Adds a chunk: a sealed memfd of size bytes, which stays the caller's. room: how many more bytes
 * of memory may wait for the user. The chunk is lost if
 * - its memory (sealed_memory()) is more than room, or the memfd has holes;
 * - READER_CHUNKS_MAX chunks wait already;
 * - the reader's rate limit is reached: on average CHUNK_BUDGET_BYTES a second (delivery.h);
 * - descriptors or memory are short, or is_stopped is set.
 */
void reader_add(struct reader *r, int fd, uint32_t size, uint64_t room, uint64_t now_ns);
/*
 * To be called at every turn: drops the chunks that wait if the peer has read nothing for
 * READER_IDLE_NS.
 */
void reader_check(struct reader *r, uint64_t now_ns);
/*
 * Sends the final message, with the reason end and a text, which is cut off at
 * PROTOCOL_TEXT_SIZE - 1 bytes. Returns 0, or
 * - -EAGAIN: chunks wait, or the socket is full. The caller tries again at a later turn;
 * - -EPIPE: the peer has disconnected, or reader_stop() was called;
 * - another error of ipc_send().
 */
must_check int reader_end(struct reader *r, enum protocol_record_end end, const char *text);
/*
 * Sends a note, before the chunks that wait. text and the returned values are as for reader_end(),
 * but -EAGAIN only says that the socket is full.
 */
must_check int reader_note(struct reader *r, const char *text);
/* Drops the chunks that wait, and counts them as lost. */
void reader_drop(struct reader *r);
/* As reader_drop(). After that the reader sends nothing more and counts new chunks as lost. */
void reader_stop(struct reader *r);

/*
 * Returns how many bytes of memory wait for the peer: chunks, and unread messages in the socket. A
 * peer that has closed the socket has no unread messages.
 */
uint64_t reader_waiting(const struct reader *r);

#endif
