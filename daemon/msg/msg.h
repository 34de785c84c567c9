/*
 * Messages between the processes of sentry-profd: the list of all types, and what all messages
 * share. msg_capture.h, msg_unwind.h and msg_ship.h have the structs and rules of the messages of
 * each kind of child process. msg_io.h sends and checks messages.
 *
 * A message is one datagram (lib/base/ipc.h): a struct and file descriptors. Both sides are built
 * from the same headers (msg_number() in msg_io.h), so the struct is in host byte order. An unknown
 * type, a wrong size, a missing descriptor or a broken rule is an error of the sender. The receiver
 * does not try to go on: the broker kills the child, and a child exits.
 *
 * Each child has a socket to the broker at descriptor MSG_FD. MSG_INIT is the first message
 * that the child gets, MSG_READY the first that the child sends. A child exits when the
 * broker has closed the socket. sentry-profctl can start an unwind or a ship, too, and then takes
 * the broker's part (daemon/ctl/common/helper.h).
 */
#ifndef DAEMON_MSG_MSG_H
#define DAEMON_MSG_MSG_H

#include <limits.h>
#include <stdint.h>

/* The sizes of the texts that messages carry, in bytes with the NUL. */
#define MSG_TEXT_MAX	 256 /* release, environment, platform: Sentry allows 200 characters */
#define MSG_DSN_MAX	 1024
#define MSG_PATTERNS_MAX 1024 /* a list of patterns of files */
#define MSG_NAME_MAX	 256  /* a file name (NAME_MAX), or a build-id in hex (128 digits) */
#define MSG_ID_SIZE	 33   /* 32 hex digits */

/* The descriptor of a child's socket to the broker. */
#define MSG_FD 3

/*
 * The messages: X(type, struct, least number of descriptors). A message can have further, optional
 * descriptors. The comment before each list names the header that has the structs. For each type
 * the same header has a constant with the size of its struct: MSG_INIT_SIZE is sizeof(struct
 * msg_init).
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
	X(MSG_EXEC_DECIDED, msg_exec_decided, 0)          \
	X(MSG_CAPTURE_STOP, msg_id, 0)                    \
	/* capture -> broker */                           \
	X(MSG_RING_MADE, msg_id, 1)                       \
	X(MSG_TARGET_STATE, msg_target_state, 0)          \
	X(MSG_RING_BROKEN, msg_id, 0)                     \
	X(MSG_CAPTURE_DONE, msg_id, 0)                    \
	X(MSG_CHILD_BORN, msg_id, 0)                      \
	X(MSG_EXEC_HELD, msg_id, 0)                       \
	/* capture -> unwind, on a socket of their own */ \
	X(MSG_RING_HEAD, msg_number, 0)                   \
	/* unwind -> capture, on these sockets */         \
	X(MSG_RING_CREDIT, msg_number, 0)                 \
	X(MSG_STACK_HINT, msg_stack_hint, 0)              \
	X(MSG_WANT_REGISTERS, msg_want_registers, 0)      \
	X(MSG_WATCH, msg_watch, 0)

/* msg_unwind.h */
#define MSG_UNWIND_LIST(X)                                 \
	/* broker -> unwind */                             \
	X(MSG_SESSION_OPEN, msg_session_open, 0)           \
	X(MSG_SESSION_CLOSE, msg_id, 0)                    \
	X(MSG_SESSION_FORGET, msg_id, 0)                   \
	X(MSG_RING_OPEN, msg_id, 2)                        \
	X(MSG_FILE_REPLY, msg_file_reply, 0)               \
	X(MSG_TABLE, msg_table, 1)                         \
	X(MSG_USAGE, msg_usage, 0)                         \
	X(MSG_RECORDING_OPEN, msg_recording_open, 0)       \
	X(MSG_RECORDING_CLOSE, msg_recording, 0)           \
	X(MSG_FILE_LOOK, msg_file_look, 1)                 \
	/* sentry-profctl -> its own unwind */             \
	X(MSG_SYMBOLIZE, msg_symbolize, 1)                 \
	/* unwind -> broker */                             \
	X(MSG_FILE_REQUEST, msg_file_request, 0)           \
	X(MSG_CHUNK, msg_chunk, 1)                         \
	X(MSG_CHUNK_LOST, msg_chunk_lost, 0)               \
	X(MSG_SESSION_OPENED, msg_id, 0)                   \
	X(MSG_SESSION_CLOSED, msg_id, 0)                   \
	X(MSG_UNWIND_STATS, msg_unwind_stats, 0)           \
	X(MSG_TABLE_DONE, msg_id, 0)                       \
	X(MSG_USAGE_DONE, msg_id, 0)                       \
	X(MSG_RECORDING_CHUNK, msg_recording_chunk, 1)     \
	X(MSG_RECORDING_LOST, msg_recording, 0)            \
	X(MSG_RECORDING_CLOSED, msg_recording, 0)          \
	X(MSG_FILE_SEEN, msg_file_seen, 0)                 \
	/* unwind -> the sentry-profctl that started it */ \
	X(MSG_SYMBOLIZED, msg_symbolized, 0)

/* msg_ship.h */
#define MSG_SHIP_LIST(X)                                 \
	/* broker -> ship */                             \
	X(MSG_DSN, msg_dsn, 0)                           \
	X(MSG_ENVELOPE, msg_envelope, 1)                 \
	X(MSG_LOST, msg_lost, 0)                         \
	X(MSG_SHIP_FINISH, msg_number, 0)                \
	X(MSG_CERTIFICATES, msg_certificates, 0)         \
	X(MSG_PROBE, msg_id, 0)                          \
	X(MSG_PING, msg_id, 0)                           \
	/* ship -> broker */                             \
	X(MSG_ENVELOPE_WRITTEN, msg_envelope_written, 0) \
	X(MSG_ENVELOPE_DONE, msg_envelope_done, 0)       \
	X(MSG_SPOOL, msg_spool, 0)                       \
	X(MSG_LIMITED, msg_number, 0)                    \
	X(MSG_DENIED, msg_denied, 0)                     \
	X(MSG_CLOCK, msg_clock, 0)                       \
	X(MSG_PROBED, msg_probed, 0)                     \
	X(MSG_PONG, msg_id, 0)

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

/* A message with an id. The comment on each type says what has this id; 0: the type has no id. */
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
 * MSG_READY, without an id: the child has dropped its privileges and works. If a child exits by
 * itself before any child of its kind has sent MSG_READY, the broker exits: another child would
 * fail in the same way (daemon/broker/children/reap.h).
 */

/*
 * MSG_INIT: the user, the limits and the files of a child.
 *
 * The message carries descriptors:
 * - to capture: the heartbeat page (daemon/msg/msg_capture.h);
 * - to unwind: the page of a uint32_t, to which unwind writes the number of the file that it reads
 *   (struct msg_file_reply);
 * - to ship: a descriptor for each bit that is set in files. Bit n stands for the constant n of
 *   enum init_file, and the descriptors have the order of the enum.
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
	/*
	 * msg_number() of the broker. A child with another number exits. So this member has the
	 * same offset in all versions.
	 */
	uint64_t number;
	/*
	 * The user and group that the child changes to. PRIVILEGES_KEEP_ID: the child keeps its
	 * own, because an ordinary user started the daemon, or because account_ids() returns
	 * PRIVILEGES_KEEP_ID (daemon/config/accounts.h).
	 */
	uint32_t uid;
	uint32_t gid;
	uint32_t debug;		  /* log at debug level */
	uint32_t seccomp_kill;	  /* for tests: a forbidden system call kills the child */
	uint32_t files;		  /* ship: a bit for each descriptor, by enum init_file */
	uint32_t nice_steps;	  /* ship: the increment of its nice value (nice(2)) */
	uint32_t follow_children; /* capture: attach to the children of targets */
	/* Capture: sample by perf events, and attach to no process. */
	uint32_t uses_perf;
	/* Ship: the limits of the spool: number and age of its chunks; 0: the default. */
	uint32_t spool_count;
	uint32_t spool_age_s;
	/*
	 * Ship: its DSN is the first one, whose spool is the directory of INIT_SPOOL itself; 0: the
	 * spool is a subdirectory (daemon/ship/spool_dirs.h).
	 */
	uint32_t spool_is_first;
	uint32_t reserved;
	uint64_t spool_bytes; /* ship: the limit of the spool's size; 0: the default */
	uint64_t spool_dsn;   /* ship: dsn_hash() of the DSN to which the spool belongs */
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
