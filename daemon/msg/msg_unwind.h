/*
 * What the broker and unwind say to each other.
 * daemon/msg/msg.h says what holds for all messages.
 */
#ifndef DAEMON_MSG_MSG_UNWIND_H
#define DAEMON_MSG_MSG_UNWIND_H

#include <stdbool.h>

#include "daemon/msg/msg.h"

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
	uint32_t environment_given;
	uint32_t by_function; /* a frame has its function's address */
	uint32_t cpu_only;    /* threads that do not run have no stack */
	/* Threads are called by these where they are known, else by tid. */
	uint32_t thread_pointers;
	/*
	 * Where chunks go. A payload for files or Spotlight says more than one
	 * for a server (proto/chunk_v2.h); with one for Spotlight comes a
	 * transaction (proto/transaction.h).
	 */
	uint32_t for_server, for_file, for_spotlight;
	/* No chunk is made: the session is there for its recordings. */
	uint32_t is_idle;
	uint64_t chunk_us;
	uint64_t first_chunk_us; /* the first one's, no longer than others */
	uint64_t wall_offset_us;
	uint64_t hash_seed;
	char profiler_id[MSG_ID_SIZE];
	/* Not "": what there is becomes a V1 profile, with one of this name. */
	char transaction[MSG_TEXT_MAX];
	char platform[MSG_TEXT_MAX];
	/* By configuration (environment_given), our environment, or made up. */
	char environment[MSG_TEXT_MAX];
	char release_given[MSG_TEXT_MAX];  /* by configuration, else "" */
	char release_env[MSG_TEXT_MAX];	   /* by our environment, else "" */
	char in_app_include[MSG_TEXT_MAX]; /* patterns of files, or "" */
	char in_app_exclude[MSG_TEXT_MAX];
};

/*
 * MSG_SESSION_CLOSE, with a target's id: its RECORD_END will not come (the
 * target was left out, or ended while there was no capture). Close its session
 * with what is there. Answered by MSG_SESSION_CLOSED, also where there is no
 * such session (any more: it was in a process that died).
 *
 * MSG_SESSION_FORGET, with the id: nothing more is wanted of a session that is
 * closed, its table neither. A session that is gone is no fault.
 *
 * MSG_RING_OPEN, with a ring's id: read this ring; it replaces the one before,
 * whose writer died. The message carries the memfd, and unwind's end of the
 * socket to capture.
 */

enum file_kind {
	/*
	 * A copy of /proc/PID/maps; from msg_maps_files() on an array of struct
	 * mapped_file, for executable mappings of which the kernel tells.
	 */
	FILE_KIND_MAPS = 1,
	FILE_KIND_IMAGE, /* the file mapped at start-end, or a copy of its bytes */
	FILE_KIND_DEBUG, /* a separate debug file by build-id */
	/* One by the name that the file mapped at start-end gives it. */
	FILE_KIND_DEBUG_LINK,
	FILE_KIND_PERF_MAP, /* /tmp/perf-PID.map: names of code made at run time */
	/*
	 * What the process runs: where the link /proc/PID/exe points, NUL,
	 * which file that is (device, inode, time of its last change; "":
	 * unknown), NUL, the beginning of /proc/PID/cmdline, NUL, and
	 * /proc/PID/environ.
	 */
	FILE_KIND_PROGRAM,
	FILE_KIND_CMDLINE,  /* the beginning of /proc/PID/cmdline: argv[0] */
	FILE_KIND_PID_FILE, /* the broker's own (files.h), never unwind's */
	FILE_KIND_EXE_LINK, /* so is this: where a path leads to, as text */
	FILE_KIND_END,
};

/* ARG_MAX is 2 MiB as a rule: of an environment no more is copied than this. */
#define MSG_ENVIRON_MAX (4u << 20)

/* Behind so many bytes of maps there is a NUL, or up to 8 of them. */
static inline size_t msg_maps_files(size_t text_size)
{
	return (text_size / sizeof(uint64_t) + 1) * sizeof(uint64_t);
}

/*
 * Unwind asks for a file. One request at a time: it waits for the MSG_FILE_REPLY
 * that answers. start < end, both page-aligned; a build-id is lower-case hex of
 * two bytes at least, a file's name as file_name_is_plain() has it: file_request.h.
 *
 * A wrong size, another kind, a target of another process, or a second request
 * before the first is answered is a broken rule: it ends unwind. A name or a
 * range that is none is answered with EINVAL, and counted (files_refused).
 */
struct msg_file_request {
	struct msg_header h;
	uint32_t request; /* counts up from 1 */
	uint32_t kind;	  /* enum file_kind */
	uint32_t target;
	uint32_t reserved;
	uint64_t start, end;	 /* FILE_KIND_IMAGE, FILE_KIND_DEBUG_LINK */
	char name[MSG_NAME_MAX]; /* FILE_KIND_DEBUG, FILE_KIND_DEBUG_LINK */
};

/*
 * The answer: error 0 and a descriptor, or an errno and none. An image or a
 * debug file has a number, which unwind shows in the page that it was given
 * with MSG_INIT as long as it reads that file, or what it made of it: a hash,
 * the same each time (blame.c). 0: this one has none.
 */
struct msg_file_reply {
	struct msg_header h;
	uint32_t request;
	int32_t error;
	uint32_t number;
	uint32_t reserved;
};

/*
 * A finished chunk. With it: its payload in a memfd sealed against every
 * change; then, if file_size is not 0, the payload for its file and for
 * Spotlight in another one. Without that these get the first payload. Then, if
 * anchor_size is not 0, the transaction that Spotlight gets with it, in another
 * one. platform is that of both payloads, byte for byte.
 */
struct msg_chunk {
	struct msg_header h;
	uint32_t target;
	uint32_t for_server;	   /* the first payload may go there */
	uint64_t size;		   /* of the first payload */
	uint64_t transaction_size; /* of which this; see lib/ship/package.h */
	uint64_t file_size;	   /* of the second payload */
	uint64_t anchor_size;	   /* of the transaction for Spotlight */
	char chunk_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
};

/*
 * A chunk that was not made into a payload. reason: enum profile_fault, enum
 * discard (daemon/msg/discard.h), or CHUNK_IDLE, which is no loss: only processor time is profiled,
 * and no thread ran.
 */
#define CHUNK_IDLE 1000
struct msg_chunk_lost {
	struct msg_header h;
	uint32_t target;
	uint32_t reason;
};

/* No more than uint64_t: figures_add_counts adds them up. */
#define MSG_UNWIND_ENDS_MAX 16
struct unwind_counts {
	uint64_t stacks;		    /* all that were walked */
	uint64_t frame_pointer;		    /* of these, by heuristic in part */
	uint64_t ends[MSG_UNWIND_ENDS_MAX]; /* by enum unwind_end */
	uint64_t malformed;		    /* records refused */
	uint64_t without_lines;		    /* addresses, because of a limit */
	uint64_t unknown_releases;	    /* chunks of a NAME@unknown */
	uint64_t cost_ns;		    /* time spent on it, without waits for files */
};
/* How stacks ended, since the target's session was opened. */
struct msg_unwind_stats {
	struct msg_header h;
	uint32_t target;
	uint32_t reserved;
	struct unwind_counts counts;
};

/*
 * A recording (daemon/broker/control/record.h): from now on to MSG_RECORD_CLOSE, or to the
 * end of the session, which closes its recordings, chunks are made of the
 * target's records a second time, under another profiler_id. record is not 0
 * and no other open one's; chunk_us: at most 60 s. With a target that has no
 * session the recording is closed at once. Answered by MSG_RECORD_CLOSED, when
 * it has ended.
 */
#define MSG_RECORDS_MAX 4 /* of a target, at a time */
struct msg_record_open {
	struct msg_header h;
	uint32_t target;
	uint32_t record;
	uint64_t chunk_us;
	char profiler_id[MSG_ID_SIZE];
};
/*
 * MSG_RECORD_CLOSE: the last chunk of the recording comes. A recording that is
 * none any more is no fault. MSG_RECORD_LOST: a chunk of it was not made into a
 * payload. MSG_RECORD_CLOSED: it has ended.
 */
struct msg_record {
	struct msg_header h;
	uint32_t target;
	uint32_t record;
};

/* A chunk of a recording. With it: its payload, in a sealed memfd. */
struct msg_record_chunk {
	struct msg_header h;
	uint32_t target;
	uint32_t record;
	uint64_t size;
};

/*
 * MSG_SESSION_OPENED, with a target's id: the answer to MSG_SESSION_OPEN.
 * MSG_SESSION_CLOSED, with the id: the target's RECORD_END was read; its last
 * chunk and stats have been sent.
 */

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
 * What targets have used, at a time by CLOCK_MONOTONIC; one without a session
 * is passed over. Answered by MSG_MEASURED: before that there is no other.
 */
#define MSG_MEASURES_MAX 64
struct msg_measure {
	uint32_t target;
	uint32_t reserved;
	uint64_t time_ns;
	uint64_t cpu_percent_millionths; /* since the last one; 100 %: a CPU */
	uint64_t memory_bytes;
	uint64_t anonymous_bytes; /* of it: RssAnon */
};
struct msg_measures {
	struct msg_header h;
	uint32_t n;
	uint32_t reserved;
	struct msg_measure v[MSG_MEASURES_MAX];
};

/*
 * sentry-profctl convert --symbolize asks an unwind of its own, instead of a
 * broker: what lies at these n addresses of a file? With it: the file, an
 * executable, a library or its separate debug file. unwind may ask for debug
 * files meanwhile (FILE_KIND_DEBUG, FILE_KIND_DEBUG_LINK; target is 0) and answers with
 * MSG_SYMBOLIZED.
 */
#define MSG_SYMBOLIZE_MAX 1024
struct msg_symbolize {
	struct msg_header h;
	uint32_t n;
	uint32_t demangle; /* names of C++ and Rust, as of platform native */
	/* What the file has to be: the build-id in lower-case hex; "": debug_id
	 * (proto/debug_meta.h). Both "": nothing fits. */
	char build_id[MSG_NAME_MAX];
	char debug_id[MSG_NAME_MAX];
	char name[MSG_NAME_MAX]; /* for functions without a symbol */
	/* From where the first segment lies; of callers one less. */
	uint64_t offsets[MSG_SYMBOLIZE_MAX];
};

enum symbolize_verdict {
	SYMBOLIZE_DONE = 1,
	SYMBOLIZE_NOT_ELF,  /* no ELF file of this processor */
	SYMBOLIZE_OTHER_ID, /* another file than the one that is wanted */
	SYMBOLIZE_NO_NAMES, /* nothing is known of any of the addresses */
	SYMBOLIZE_NO_MEMORY,
};

/*
 * The answer. With SYMBOLIZE_DONE and _NO_NAMES: size bytes in a sealed memfd,
 * a place for each address in its order (daemon/msg/symbolized.h).
 */
struct msg_symbolized {
	struct msg_header h;
	uint32_t verdict; /* enum symbolize_verdict */
	uint32_t reserved;
	uint64_t size;
};
static inline bool msg_symbolized_has_answer(uint32_t verdict)
{
	return verdict == SYMBOLIZE_DONE || verdict == SYMBOLIZE_NO_NAMES;
}

/*
 * MSG_FILE_LOOK, of sentry-profctl doctor to an unwind of its own: what does
 * the ELF file that comes with it have? Answered by MSG_FILE_SEEN.
 */
enum file_verdict {
	FILE_READ = 1,
	FILE_NO_ELF,
	FILE_32_BIT,
	FILE_DAMAGED, /* or of another processor */
	FILE_VERDICT_END,
};
struct msg_file_seen {
	struct msg_header h;
	uint32_t verdict; /* enum file_verdict; only FILE_READ has the rest */
	uint32_t has_cfi;
	uint32_t keeps_frame_pointers; /* looked for only without CFI */
	uint32_t has_symbols;	       /* a symbol table, its own or packed */
	uint32_t has_debug_info;
	char build_id[MSG_NAME_MAX]; /* in hex; "": it has none */
};

/* MSG_SESSION_OPEN_SIZE and so on: the size of each type's struct. */
enum {
#define X(type, name, fds) type##_SIZE = sizeof(struct name),
	MSG_UNWIND_LIST(X)
#undef X
};

#endif
