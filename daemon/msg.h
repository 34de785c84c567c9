/*
 * Every message between the processes of sentry-profd: its struct, who sends
 * it to whom, which descriptors go with it, and its rule.
 *
 * A message is one datagram (lib/base/ipc.h): the struct as it stands here,
 * host byte order, same build on both sides. A message of an unknown type, a
 * wrong size, with a missing descriptor, or that breaks its rule ends the
 * sender: the receiver never repairs it. The broker kills the child; a child
 * exits.
 *
 * Each child has its socket to the broker at MSG_FD and gets MSG_INIT first.
 * A child whose broker is gone (end of the socket) ends.
 */
#ifndef DAEMON_MSG_H
#define DAEMON_MSG_H

#include <limits.h>
#include <stdint.h>

#include "lib/base/ipc.h"

/* A child's socket to the broker. */
#define MSG_FD 3

/* Lengths of texts that travel, NUL included. */
#define MSG_TEXT_MAX 256 /* release, environment, platform: 200 at Sentry */
#define MSG_DSN_MAX  1024
#define MSG_NAME_MAX 256 /* NAME_MAX; a build-id in hex has 128 */
#define MSG_ID_SIZE  33	 /* 32 hex digits */

enum msg_type {
	/* broker -> each child */
	MSG_INIT = 1,
	/* each child -> broker */
	MSG_READY,
	/* broker -> capture */
	MSG_RING_MAKE,
	MSG_TARGET_ADD,
	MSG_TARGET_RATE,
	MSG_CAPTURE_STOP,
	/* capture -> broker */
	MSG_RING_MADE,
	MSG_TARGET_STATE,
	MSG_RING_BROKEN,
	MSG_CAPTURE_DONE,
	/* capture -> unwind, on a socket of their own */
	MSG_RING_HEAD,
	/* unwind -> capture, there */
	MSG_RING_CREDIT,
	MSG_STACK_HINT,
	/* broker -> unwind */
	MSG_SESSION_OPEN,
	MSG_SESSION_RENEW,
	MSG_SESSION_CLOSE,
	MSG_RING_OPEN,
	MSG_FILE,
	MSG_TABLE,
	/* unwind -> broker */
	MSG_WANT,
	MSG_CHUNK,
	MSG_CHUNK_LOST,
	MSG_SESSION_OPENED,
	MSG_SESSION_CLOSED,
	MSG_UNWIND_STATS,
	MSG_TABLE_DONE,
	/* broker -> ship */
	MSG_DSN,
	MSG_ENVELOPE,
	MSG_LOST,
	MSG_SHIP_FINISH,
	/* ship -> broker */
	MSG_ENVELOPE_WRITTEN,
	MSG_ENVELOPE_DONE,
	MSG_SPOOL,
	MSG_LIMITED,
};

struct msg_header {
	uint32_t type;
	uint32_t size; /* of the whole message */
};

/*
 * What a child is to become. uid and gid: MSG_ID_KEEP leaves them as they are
 * (the daemon was started by an ordinary user).
 * To capture comes one descriptor: the heartbeat page (daemon/heartbeat.h). To
 * ship, for each bit of files one: bit n is n of enum init_file, in that order.
 */
#define MSG_ID_KEEP UINT32_MAX
enum init_file {
	INIT_SPOOL, /* the spool's directory */
	INIT_CA_CERTS,
	INIT_CLIENT_CERT,
	INIT_CLIENT_KEY,
	INIT_FILE_N
};
struct msg_init {
	struct msg_header h;
	uint32_t uid;
	uint32_t gid;
	uint32_t debug; /* log at debug level */
	/* Tests: a forbidden call kills instead of failing. */
	uint32_t seccomp_kill;
	uint32_t files;
};

/*
 * The first message of each child: it has become what it is to be, and works.
 * One that ends before has no place here, and would end again.
 */
struct msg_ready {
	struct msg_header h;
};

/*
 * Make a ring. With it: capture's end of a socket to the unwind process that
 * is to read it. A ring of this id that exists already is replaced: its reader
 * died, so its targets start from nothing in the new one.
 */
struct msg_ring_make {
	struct msg_header h;
	uint32_t ring;
};

/* The ring exists. With it: its memfd, sealed. */
struct msg_ring_made {
	struct msg_header h;
	uint32_t ring;
};

/* The ring's reader has sent something that breaks a rule. */
struct msg_ring_broken {
	struct msg_header h;
	uint32_t ring;
};

/* Attach to a process. With it: a pidfd, so that the pid is no other's. */
struct msg_target_add {
	struct msg_header h;
	uint32_t target;
	uint32_t ring;
	int32_t pid;
	uint32_t slot; /* its counters' place in the heartbeat page */
	/* Tick n is at epoch_ns + n * period_ns, CLOCK_MONOTONIC. */
	uint64_t epoch_ns;
	uint64_t period_ns;
};

/*
 * Look at a target at so many of every of_ticks ticks, spread evenly; 0 <
 * ticks <= of_ticks. A target that is gone is no fault.
 */
struct msg_target_rate {
	struct msg_header h;
	uint32_t target;
	uint32_t ticks;
	uint32_t of_ticks;
};

/*
 * Take what is pending, write RECORD_END for every target, say
 * MSG_CAPTURE_DONE and exit: the kernel detaches without stopping a thread.
 * keep_sessions: without RECORD_END, another capture will go on with them.
 */
struct msg_capture_stop {
	struct msg_header h;
	uint32_t keep_sessions;
};

enum target_state {
	TARGET_ATTACHED = 1, /* all threads are seized */
	/*
	 * error says why: EPERM, ESRCH, EBUSY (traced), ENOEXEC (32-bit: also
	 * later, after an exec). It is let go.
	 */
	TARGET_REFUSED,
	TARGET_GONE, /* the process has ended; RECORD_END is written */
	TARGET_EXEC, /* a new program; RECORD_EXEC is written */
};

struct msg_target_state {
	struct msg_header h;
	uint32_t target;
	uint32_t state; /* enum target_state */
	int32_t error;	/* errno, with TARGET_REFUSED */
};

/* The answer to MSG_CAPTURE_STOP, and to nothing else. */
struct msg_capture_done {
	struct msg_header h;
};

/*
 * Records up to here may be read. Sent a few times a second, when much has come
 * together, and when a target has ended or runs a new program.
 */
struct msg_ring_head {
	struct msg_header h;
	uint64_t head;
};

/* Records up to here have been read. Sent when that is worth a wake. */
struct msg_ring_credit {
	struct msg_header h;
	uint64_t tail;
};

/*
 * How much of a thread's stack is of use: up to top (exclusive). 0: not known,
 * copy what there is. A hint: capture checks it against the stack pointer.
 *
 * second: where the thread goes on, on its own stack, when what it does on
 * another one is over; copied as a second range while its stack pointer is near
 * second_sp. 0: none. Capture knows itself where a thread's own stack ends.
 */
struct msg_stack_hint {
	struct msg_header h;
	uint32_t target;
	uint32_t tid;
	uint64_t top;
	uint64_t second;
	uint64_t second_sp;
};

/*
 * A target whose samples will come through a ring: answered by
 * MSG_SESSION_OPENED before that ring has its first record of the target. No
 * more than MSG_SESSIONS_ASKED_MAX are unanswered at a time, so that the socket
 * has room for what unwind needs to answer.
 */
#define MSG_SESSIONS_ASKED_MAX 8
struct msg_session_open {
	struct msg_header h;
	uint32_t target;
	int32_t pid;
	uint32_t max_frames;
	uint32_t symbols; /* enum unwind_symbols */
	uint64_t chunk_us;
	uint64_t first_chunk_us; /* the first one's, no longer than others */
	uint64_t wall_offset_us;
	uint64_t hash_seed;
	char profiler_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
	char environment[MSG_TEXT_MAX];
	char release_given[MSG_TEXT_MAX]; /* by configuration, else "" */
	char release_env[MSG_TEXT_MAX];	  /* by our environment, else "" */
};

/*
 * capture has let go of the target for a while: what there is of it is a chunk
 * now, and what comes is another profiler's. A session that is none any more is
 * no fault.
 */
struct msg_session_renew {
	struct msg_header h;
	uint32_t target;
	char profiler_id[MSG_ID_SIZE];
};

/*
 * The target's RECORD_END will not come (it was left out, or ended while there
 * was no capture): close its session with what is there. Answered by
 * MSG_SESSION_CLOSED, also where there is no such session (any more: it was in
 * a process that died).
 */
struct msg_session_close {
	struct msg_header h;
	uint32_t target;
};

/*
 * Read this ring; it replaces the one before, whose writer died. With it: the
 * memfd, and unwind's end of the socket to capture.
 */
struct msg_ring_open {
	struct msg_header h;
	uint32_t ring;
};

enum want_kind {
	WANT_MAPS = 1, /* a copy of /proc/PID/maps */
	WANT_IMAGE, /* the file mapped at start-end, or a copy of its bytes */
	WANT_DEBUG, /* a separate debug file by build-id */
	/* One by the name that the file mapped at start-end gives it. */
	WANT_DEBUG_LINK,
	WANT_PERF_MAP, /* /tmp/perf-PID.map: names of code made at run time */
	WANT_ENVIRON,  /* a copy of /proc/PID/environ */
	WANT_EXE,      /* where the link /proc/PID/exe points, as text */
	WANT_CMDLINE,  /* the beginning of /proc/PID/cmdline: argv[0] */
	WANT_END,
};

/*
 * Unwind asks for a file. One request at a time: it waits for the MSG_FILE
 * that answers. start < end, both page-aligned; a build-id is lower-case hex, a
 * file's name one component of printable ASCII that does not start with a dot;
 * else the request is a broken rule.
 */
struct msg_want {
	struct msg_header h;
	uint32_t request; /* counts up from 1 */
	uint32_t kind;	  /* enum want_kind */
	uint32_t target;
	uint32_t reserved;
	uint64_t start, end;	 /* WANT_IMAGE, WANT_DEBUG_LINK */
	char name[MSG_NAME_MAX]; /* WANT_DEBUG, WANT_DEBUG_LINK */
};

/* The answer: error 0 and a descriptor, or an errno and none. */
struct msg_file {
	struct msg_header h;
	uint32_t request;
	int32_t error;
};

/*
 * A finished chunk. With it: its payload in a memfd sealed against every
 * change. platform is that of the payload, byte for byte.
 */
struct msg_chunk {
	struct msg_header h;
	uint32_t target;
	uint32_t reserved;
	uint64_t size; /* of the payload */
	char chunk_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
};

/*
 * A chunk that was not made into a payload. reason: enum profile_fault, whose
 * names are in proto/profile.h, or CHUNK_LOST_*.
 */
enum chunk_lost {
	CHUNK_LOST_MEMORY = 1000, /* no memory or no space for the payload */
	CHUNK_LOST_TOO_LARGE, /* above the server's limit in spite of the cut */
};
struct msg_chunk_lost {
	struct msg_header h;
	uint32_t target;
	uint32_t reason;
};

/* How stacks ended, since the target's session was opened. */
#define MSG_UNWIND_ENDS_MAX 16
struct msg_unwind_stats {
	struct msg_header h;
	uint32_t target;
	uint32_t reserved;
	uint64_t stacks;		    /* all that were walked */
	uint64_t frame_pointer;		    /* of these, by heuristic in part */
	uint64_t ends[MSG_UNWIND_ENDS_MAX]; /* by enum unwind_end */
	uint64_t malformed;		    /* records refused */
	uint64_t without_lines;		    /* addresses, because of a limit */
	uint64_t cost_ns; /* time spent on it, without waits for files */
};

struct msg_session_opened {
	struct msg_header h;
	uint32_t target;
};

/* The target's RECORD_END was read; its last chunk and stats have been sent. */
struct msg_session_closed {
	struct msg_header h;
	uint32_t target;
};

/*
 * Write the table of the target's hottest functions. With it: the descriptor
 * to write to.
 */
struct msg_table {
	struct msg_header h;
	uint32_t target;
	uint32_t max_rows;
};
struct msg_table_done {
	struct msg_header h;
	uint32_t target;
	int32_t error; /* errno; ENOENT: there is no such session */
};

/*
 * Where envelopes go. "" or no such message: nowhere, files only. A ship before
 * has said MSG_LIMITED until then; 0: none.
 */
struct msg_dsn {
	struct msg_header h;
	uint64_t limited_until_ns;
	uint32_t retry_5xx; /* 502, 503 and 504 are as good as no answer */
	uint32_t reserved;
	char dsn[MSG_DSN_MAX];
};

/*
 * An envelope to make of a chunk: written to a file, sent, or both. With it:
 * the payload's memfd; then, if to_file, the file, empty and open for writing.
 * No more than MSG_ENVELOPES_MAX are unanswered at a time, which ship's queue
 * and its socket hold: a hundred targets' chunks are made at the same tick.
 */
#define MSG_ENVELOPES_MAX 24
struct msg_envelope {
	struct msg_header h;
	uint64_t seq; /* counts up */
	uint64_t size;
	uint32_t to_file;
	uint32_t to_server;
	char chunk_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
};

enum ship_result {
	SHIP_NOTHING,	     /* was not asked for */
	SHIP_DONE,	     /* answered by 2xx */
	SHIP_SPOOLED,	     /* there was no answer: it is sent later */
	SHIP_NETWORK_ERROR,  /* no answer, and no place to wait for one */
	SHIP_SEND_ERROR,     /* the server refused it: 4xx, 5xx */
	SHIP_RATE_LIMITED,   /* 429, or not sent because of a limit */
	SHIP_QUEUE_OVERFLOW, /* newer ones took its place: the server is slow */
	SHIP_INTERNAL_ERROR, /* no memory to send it */
};

/*
 * All of an envelope is in its file, or, with an errno, is not. Comes at once,
 * for each with to_file; how it was sent may take long.
 */
struct msg_envelope_written {
	struct msg_header h;
	uint64_t seq;
	int32_t error;
	uint32_t reserved;
};

/* It was sent, or will not be by this process: the last word on it. */
struct msg_envelope_done {
	struct msg_header h;
	uint64_t seq;
	uint32_t result; /* enum ship_result */
	uint32_t reserved;
};

/*
 * Chunks that were lost before they were envelopes, or on their way to ship:
 * the server is told of them. ship knows of its own.
 */
struct msg_lost {
	struct msg_header h;
	uint64_t quantity; /* > 0 */
	uint32_t reason;   /* enum client_report_reason */
	uint32_t reserved;
};

/*
 * The end is near: send for so long, then put into the spool what is left, or
 * give it up. Each envelope is answered as ever.
 */
struct msg_ship_finish {
	struct msg_header h;
	uint64_t timeout_ns;
};

/* The spool, when something has changed. */
struct msg_spool {
	struct msg_header h;
	uint64_t count; /* that wait in it now */
	uint64_t bytes;
	/* What became of chunks in it, since this process was started. */
	uint64_t sent;
	uint64_t refused; /* by a status */
	uint64_t rate_limited;
	uint64_t overflow; /* newer ones took their place */
	uint64_t expired;
	uint64_t set_aside; /* not as they were written, or not ours */
};

/*
 * The server takes no profile chunks until then, by CLOCK_BOOTTIME; no longer
 * than RATELIMIT_MAX_S from now (proto/ratelimit.h). When that has changed.
 */
struct msg_limited {
	struct msg_header h;
	uint64_t until_ns;
};

#endif
