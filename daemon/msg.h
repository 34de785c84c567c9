/*
 * Every message between the processes of sentry-profd: its struct, who sends
 * it to whom, which descriptors go with it, and its rule. Here is what holds
 * for all; those of each child have a file of their own, included at the end.
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
	MSG_TARGET_REMOVE,
	MSG_TARGET_RATE,
	MSG_CAPTURE_STOP,
	/* capture -> broker */
	MSG_RING_MADE,
	MSG_TARGET_STATE,
	MSG_RING_BROKEN,
	MSG_CAPTURE_DONE,
	MSG_CHILD_BORN,
	/* capture -> unwind, on a socket of their own */
	MSG_RING_HEAD,
	/* unwind -> capture, there */
	MSG_RING_CREDIT,
	MSG_STACK_HINT,
	/* broker -> unwind */
	MSG_SESSION_OPEN,
	MSG_SESSION_CLOSE,
	MSG_SESSION_FORGET,
	MSG_RING_OPEN,
	MSG_FILE,
	MSG_TABLE,
	MSG_MEASURES,
	MSG_RECORD_OPEN,
	MSG_RECORD_CLOSE,
	/* sentry-profctl -> its own unwind */
	MSG_SYMBOLIZE,
	/* unwind -> broker */
	MSG_WANT,
	MSG_CHUNK,
	MSG_CHUNK_LOST,
	MSG_SESSION_OPENED,
	MSG_SESSION_CLOSED,
	MSG_UNWIND_STATS,
	MSG_TABLE_DONE,
	MSG_MEASURED,
	MSG_RECORD_CHUNK,
	MSG_RECORD_LOST,
	MSG_RECORD_CLOSED,
	/* unwind -> the sentry-profctl that started it */
	MSG_SYMBOLIZED,
	/* broker -> ship */
	MSG_DSN,
	MSG_ENVELOPE,
	MSG_LOST,
	MSG_SHIP_FINISH,
	MSG_CERTIFICATES,
	MSG_PROBE,
	/* ship -> broker */
	MSG_ENVELOPE_WRITTEN,
	MSG_ENVELOPE_DONE,
	MSG_SPOOL,
	MSG_LIMITED,
	MSG_CLOCK,
	MSG_PROBED,
};

struct msg_header {
	uint32_t type;
	uint32_t size; /* of the whole message */
};

/*
 * What a child is to become. uid and gid: MSG_ID_KEEP leaves them as they are
 * (the daemon was started by an ordinary user).
 * To capture comes one descriptor: the heartbeat page (daemon/heartbeat.h). To
 * unwind, the page for the number of a file (struct msg_file). To ship, for
 * each bit of files one: bit n is n of enum init_file, in that order.
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
	uint32_t nice_steps; /* to go behind the broker, for ship */
	uint32_t follows;    /* children of targets, for capture */
	/* Limits of the spool, for ship; 0: the default. */
	uint32_t spool_count;
	uint32_t spool_age_s;
	uint32_t spool_is_first; /* all of it, not a part (spool_part.h) */
	uint64_t spool_bytes;
	uint64_t spool_dsn; /* whose it is: dsn_number */
};

/*
 * The first message of each child: it has become what it is to be, and works.
 * One that ends before has no place here, and would end again.
 */
struct msg_ready {
	struct msg_header h;
};

#include "daemon/msg_capture.h"
#include "daemon/msg_ship.h"
#include "daemon/msg_unwind.h"

#endif
