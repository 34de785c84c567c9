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
#ifndef DAEMON_MSG_MSG_H
#define DAEMON_MSG_MSG_H

#include <limits.h>
#include <stdint.h>

#include "daemon/msg/sizes.h"

/* A child's socket to the broker. */
#define MSG_FD 3

/*
 * The messages: X(type, struct, number of descriptors that it must have at least). A
 * message can have optional descriptors beyond that number. The structs of a list are in
 * the header that the comment names, and so is NAME_SIZE, the size of each.
 */
/* this header */
#define MSG_COMMON_LIST(X)         \
	/* broker -> each child */ \
	X(MSG_INIT, msg_init, 0)   \
	/* each child -> broker */ \
	X(MSG_READY, msg_id, 0)

/* msg_capture.h */
#define MSG_CAPTURE_LIST(X)                               \
	/* broker -> capture */                           \
	X(MSG_RING_MAKE, msg_id, 1)                       \
	X(MSG_TARGET_ADD, msg_target_add, 1)              \
	X(MSG_TARGET_REMOVE, msg_id, 0)                   \
	X(MSG_TARGET_RATE, msg_target_rate, 0)            \
	X(MSG_CAPTURE_STOP, msg_id, 0)                    \
	/* capture -> broker */                           \
	X(MSG_RING_MADE, msg_id, 1)                       \
	X(MSG_TARGET_STATE, msg_target_state, 0)          \
	X(MSG_RING_BROKEN, msg_id, 0)                     \
	X(MSG_CAPTURE_DONE, msg_id, 0)                    \
	X(MSG_CHILD_BORN, msg_id, 0)                      \
	/* capture -> unwind, on a socket of their own */ \
	X(MSG_RING_HEAD, msg_number, 0)                   \
	/* unwind -> capture, there */                    \
	X(MSG_RING_CREDIT, msg_number, 0)                 \
	X(MSG_STACK_HINT, msg_stack_hint, 0)

/* msg_unwind.h */
#define MSG_UNWIND_LIST(X)                                 \
	/* broker -> unwind */                             \
	X(MSG_SESSION_OPEN, msg_session_open, 0)           \
	X(MSG_SESSION_CLOSE, msg_id, 0)                    \
	X(MSG_SESSION_FORGET, msg_id, 0)                   \
	X(MSG_RING_OPEN, msg_id, 2)                        \
	X(MSG_FILE_REPLY, msg_file_reply, 0)               \
	X(MSG_TABLE, msg_table, 1)                         \
	X(MSG_MEASURES, msg_measures, 0)                   \
	X(MSG_RECORD_OPEN, msg_record_open, 0)             \
	X(MSG_RECORD_CLOSE, msg_record, 0)                 \
	/* sentry-profctl -> its own unwind */             \
	X(MSG_SYMBOLIZE, msg_symbolize, 1)                 \
	X(MSG_FILE_LOOK, msg_id, 1)                        \
	/* unwind -> broker */                             \
	X(MSG_FILE_REQUEST, msg_file_request, 0)           \
	X(MSG_CHUNK, msg_chunk, 1)                         \
	X(MSG_CHUNK_LOST, msg_chunk_lost, 0)               \
	X(MSG_SESSION_OPENED, msg_id, 0)                   \
	X(MSG_SESSION_CLOSED, msg_id, 0)                   \
	X(MSG_UNWIND_STATS, msg_unwind_stats, 0)           \
	X(MSG_TABLE_DONE, msg_table_done, 0)               \
	X(MSG_MEASURED, msg_id, 0)                         \
	X(MSG_RECORD_CHUNK, msg_record_chunk, 1)           \
	X(MSG_RECORD_LOST, msg_record, 0)                  \
	X(MSG_RECORD_CLOSED, msg_record, 0)                \
	/* unwind -> the sentry-profctl that started it */ \
	X(MSG_SYMBOLIZED, msg_symbolized, 0)               \
	X(MSG_FILE_SEEN, msg_file_seen, 0)

/* msg_ship.h */
#define MSG_SHIP_LIST(X)                                 \
	/* broker -> ship */                             \
	X(MSG_DSN, msg_dsn, 0)                           \
	X(MSG_ENVELOPE, msg_envelope, 1)                 \
	X(MSG_LOST, msg_lost, 0)                         \
	X(MSG_SHIP_FINISH, msg_number, 0)                \
	X(MSG_CERTIFICATES, msg_certificates, 0)         \
	X(MSG_PROBE, msg_id, 0)                          \
	/* ship -> broker */                             \
	X(MSG_ENVELOPE_WRITTEN, msg_envelope_written, 0) \
	X(MSG_ENVELOPE_DONE, msg_envelope_done, 0)       \
	X(MSG_SPOOL, msg_spool, 0)                       \
	X(MSG_LIMITED, msg_number, 0)                    \
	X(MSG_CLOCK, msg_clock, 0)                       \
	X(MSG_PROBED, msg_probed, 0)

#define MSG_LIST(X) MSG_COMMON_LIST(X) MSG_CAPTURE_LIST(X) MSG_UNWIND_LIST(X) MSG_SHIP_LIST(X)

enum msg_type {
	MSG_NONE,
#define X(type, name, fds) type,
	MSG_LIST(X)
#undef X
};

struct msg_header {
	uint32_t type;
	uint32_t size; /* of the whole message */
};

/*
 * A message that says its type and one id, or nothing: then id is 0. What the
 * id is stands at the type's rule.
 */
struct msg_id {
	struct msg_header h;
	uint32_t id;
};

/* A message with one number. */
struct msg_number {
	struct msg_header h;
	uint64_t n;
};

/*
 * MSG_READY: the first message of each child. The child has become what it is
 * to be, and works. A child that ends before would end again.
 */

/*
 * What a child is to become. uid and gid: PRIVILEGES_KEEP_ID leaves them as they are
 * (the daemon was started by an ordinary user).
 * To capture comes one descriptor: the heartbeat page (daemon/msg/heartbeat.h). To
 * unwind, the page for the number of a file (struct msg_file_reply). To ship, for
 * each bit of files one: bit n is n of enum init_file, in that order.
 */
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

/* MSG_INIT_SIZE and so on: the size of each type's struct. */
enum {
#define X(type, name, fds) type##_SIZE = sizeof(struct name),
	MSG_COMMON_LIST(X)
#undef X
};

/* Initialises the header of a message of this type, which is a name in MSG_LIST. */
#define MSG_HEADER(message_type)                                    \
	{                                                           \
		.type = (message_type), .size = message_type##_SIZE \
	}

#endif
