/*
 * Messages between the broker and unwind. sentry-profctl can start an unwind itself, and then takes
 * the broker's part (daemon/ctl/common/helper.h). daemon/msg/msg.h says what holds for all
 * messages.
 *
 * A chunk is the profile of one target for up to 60 s. Its payload has one of two formats of
 * Sentry: V2, the usual one (proto/chunk_v2.h), or V1, the former one, in which a profile
 * belongs to one transaction (proto/profile_v1.h).
 */
#ifndef DAEMON_MSG_MSG_UNWIND_H
#define DAEMON_MSG_MSG_UNWIND_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/msg/msg.h"

/*
 * MSG_SESSION_OPEN opens a session: the state of one target in unwind while the target is
 * profiled. Unwind answers with MSG_SESSION_OPENED. Only then does the broker send
 * MSG_TARGET_ADD to capture, so that unwind gets no record of an unknown target. At most
 * MSG_SESSIONS_ASKED_MAX of these messages are unanswered at any time, so that unwind's answers
 * find room in the socket.
 */
#define MSG_SESSIONS_ASKED_MAX 8
struct msg_session_open {
	struct msg_header h;
	uint32_t target;
	int32_t pid;
	uint32_t max_frames;	  /* of a stack: further callers are left out */
	uint32_t symbols;	  /* enum unwind_symbols */
	uint32_t lines_for_files; /* source lines in payloads for files only (aggregate.h) */
	/* 0: the target's $SENTRY_ENVIRONMENT, if set, replaces the member environment. */
	uint32_t environment_given;
	uint32_t by_function;	   /* report the address of a frame's function, not the pc */
	uint32_t cpu_only;	   /* leave out the stacks of threads that do not run */
	uint32_t use_pthread_self; /* a thread's id in chunks is pthread_self(), if known */
	/*
	 * The destinations of chunks. Spotlight is Sentry's viewer on a developer's own machine.
	 * A payload for a file or for Spotlight has members that a payload for a server has not
	 * (proto/chunk_v2.h). A payload for Spotlight comes with an anchor (struct msg_chunk).
	 */
	uint32_t for_server, for_file, for_spotlight;
	uint32_t with_command_line; /* payloads for a file have PROFILE_COMMAND_LINE */
	uint32_t recordings_only;   /* make no chunks: the session exists for its recordings */
	uint32_t with_table;	    /* the table of MSG_TABLE includes the session */
	uint64_t chunk_us;	    /* length of a chunk, at most 60 s */
	uint64_t first_chunk_us;    /* length of the first chunk, at most chunk_us */
	uint64_t wall_offset_us;    /* CLOCK_REALTIME minus CLOCK_MONOTONIC, for all samples */
	uint64_t hash_seed;	    /* random, because the target chooses the keys of hash tables */
	char profiler_id[MSG_ID_SIZE];
	/* If not "": the session has one chunk, a V1 profile of the transaction of this name. */
	char transaction[MSG_TEXT_MAX];
	char platform[MSG_TEXT_MAX]; /* of Sentry, for all chunks, such as "native" */
	/* Configured, else the daemon's $SENTRY_ENVIRONMENT, else the default. */
	char environment[MSG_TEXT_MAX];
	char release_given[MSG_TEXT_MAX]; /* of the configuration, else "" */
	char release_env[MSG_TEXT_MAX];	  /* $SENTRY_RELEASE of the daemon, else "" */
	/*
	 * Patterns of files whose code belongs to the application (include), or does not (exclude);
	 * "": none (lib/aggregate/in_app.h).
	 */
	char in_app_include[MSG_PATTERNS_MAX];
	char in_app_exclude[MSG_PATTERNS_MAX];
};

/*
 * MSG_SESSION_OPENED, with a target's id: the answer to MSG_SESSION_OPEN.
 *
 * MSG_SESSION_CLOSE, with the id: close the session, because the target's RECORD_END (the last
 * record of a target in the ring) will not come. The reason is that capture has detached without
 * writing RECORD_END, or that the target has ended while no capture ran. Unwind answers with
 * MSG_SESSION_CLOSED, even if it has no such session.
 *
 * MSG_SESSION_CLOSED, with the id: unwind has closed the session, because it has read the target's
 * RECORD_END, or because of MSG_SESSION_CLOSE. Before this message unwind sends the last chunk and
 * the last counts.
 *
 * MSG_SESSION_FORGET, with the id: free the closed session. Unwind ignores the message if it
 * has no such session.
 *
 * MSG_RING_OPEN, with a ring's id: read this ring (daemon/msg/msg_capture.h) from now on. The
 * message carries the ring's memfd and unwind's end of the socket to capture. If unwind still has
 * an older ring, the capture process that wrote the older ring has ended. Unwind first reads the
 * remaining records of the older ring.
 */

/* The file, or the text of a process, that unwind requests from the broker. */
enum file_kind {
	/*
	 * A copy of /proc/PID/maps, followed at offset msg_maps_files() by an array of struct
	 * mapped_file (lib/base/file_identity.h): an element for each executable mapping whose
	 * file the broker could identify.
	 */
	FILE_KIND_MAPS = 1,
	/*
	 * The file mapped at [start, end). For the vDSO, or if the file cannot be opened: a copy of
	 * the mapped bytes.
	 */
	FILE_KIND_IMAGE,
	FILE_KIND_DEBUG,      /* a separate debug file, by build-id */
	FILE_KIND_DEBUG_LINK, /* the same, by the name in the file mapped at [start, end) */
	FILE_KIND_PERF_MAP,   /* /tmp/perf-PID.map: names of code generated at run time */
	/*
	 * The program of a process, as five texts in one memfd; each of the first four ends with a
	 * NUL:
	 * - the path in the link /proc/PID/exe;
	 * - the file's device, inode and modification time; "": unknown;
	 * - argv[0], the beginning of /proc/PID/cmdline;
	 * - the first PATH_MAX - 1 bytes of /proc/PID/cmdline, with a space between the arguments;
	 * - /proc/PID/environ; "" if another user may have chosen it
	 *   (daemon/broker/targets/instance.h).
	 */
	FILE_KIND_PROGRAM,
	FILE_KIND_CMDLINE, /* the first PATH_MAX bytes of /proc/PID/cmdline */
	/*
	 * The kinds below are for the broker itself (daemon/broker/files/files.h). The broker kills
	 * an unwind process that asks for one.
	 */
	FILE_KIND_PID_FILE, /* a pid file of the configuration */
	FILE_KIND_EXE_LINK, /* a path of the configuration, with its links resolved, as text */
	/* The files with code: struct process_code_file[] (daemon/process/process_root.h). */
	FILE_KIND_CODE_LIST,
	FILE_KIND_CODE,		/* as FILE_KIND_IMAGE, but never a copy of mapped bytes */
	FILE_KIND_LEAK_OPTIONS, /* a struct leak_options (daemon/process/leak_options.h) */
	FILE_KIND_ENVIRON,	/* the first MSG_ENVIRON_MAX bytes of /proc/PID/environ */
	FILE_KIND_END,
};

/* The most bytes of /proc/PID/environ that are copied: ARG_MAX is usually 2 MiB. */
#define MSG_ENVIRON_MAX (4u << 20)

/* The most bytes of /proc/PID/maps that are copied: 65,536 lines of 256 bytes. */
#define MSG_MAPS_MAX (16u << 20)

/*
 * Returns the offset of the array in a file of FILE_KIND_MAPS whose text has text_size bytes: the
 * next multiple of 8. Between the text and the array are 1 to 8 NULs.
 */
static inline size_t msg_maps_files(size_t text_size)
{
	return (text_size / sizeof(uint64_t) + 1) * sizeof(uint64_t);
}

/*
 * MSG_FILE_REQUEST: unwind asks for a file, and waits for the MSG_FILE_REPLY before it asks
 * for another. daemon/msg/file_request.h checks the fields:
 * - start < end, both multiples of 4096;
 * - a build-id has at least 4 lower-case hex digits;
 * - the name of a debug file has only printable ASCII characters without space and slash, and does
 *   not begin with a dot (lib/base/file_name.h).
 *
 * A wrong size, an unknown kind, the target of another unwind process, or a second request
 * before the answer to the first breaks a rule: the broker kills unwind. If a range or a name is
 * not valid, the broker answers with EINVAL and counts the request (files_refused). If the target
 * has ended, the broker answers with ESRCH.
 */
struct msg_file_request {
	struct msg_header h;
	uint32_t request; /* counts up from 1 */
	uint32_t kind;	  /* enum file_kind */
	uint32_t target;
	uint32_t reserved;
	uint64_t start, end; /* FILE_KIND_IMAGE, FILE_KIND_DEBUG_LINK */
	/* The build-id (FILE_KIND_DEBUG), or the name of the debug file (FILE_KIND_DEBUG_LINK). */
	char name[MSG_NAME_MAX];
};

/*
 * MSG_FILE_REPLY, the answer: error 0 and a descriptor, or an errno and no descriptor.
 *
 * number is the file number of an image or a debug file: a hash of the identity of the file, so the
 * same for each request. For all other files number is 0. Unwind writes the number to the page of
 * MSG_INIT while it reads the file, or data made from the file. So the broker knows at which file
 * an unwind process died (daemon/broker/files/quarantine.h).
 */
struct msg_file_reply {
	struct msg_header h;
	uint32_t request;
	int32_t error;
	uint32_t number;
	uint32_t reserved;
};

/*
 * MSG_CHUNK: a finished chunk. The message carries up to three memfds that are sealed against
 * every change, in this order:
 * - the first payload;
 * - if file_size is not 0, the second payload, for the file and for Spotlight: it has members that
 *   the server does not get. If file_size is 0, the first payload is for all destinations;
 * - if anchor_size is not 0, the anchor: a transaction that refers to the chunk
 *   (proto/transaction.h). Spotlight shows a chunk only below such a transaction.
 * platform is the same as in both payloads, byte for byte.
 */
struct msg_chunk {
	struct msg_header h;
	uint32_t target;
	uint32_t for_server; /* the first payload may be sent to the server */
	uint64_t size;	     /* of the first payload */
	/* Not 0: the first payload is a transaction of this many bytes, then a V1 profile. */
	uint64_t transaction_size;
	uint64_t file_size;   /* of the second payload */
	uint64_t anchor_size; /* of the anchor */
	char chunk_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
};

/*
 * MSG_CHUNK_LOST: the time of a chunk is over, and there is no payload. reason is an enum
 * profile_fault, an enum discard (daemon/msg/discard.h), or CHUNK_IDLE. CHUNK_IDLE is no loss: only
 * processor time is profiled (cpu_only), and no thread ran.
 */
#define CHUNK_IDLE 1000
struct msg_chunk_lost {
	struct msg_header h;
	uint32_t target;
	uint32_t reason;
};

#define MSG_UNWIND_ENDS_MAX 16
/* Counters of a session. All fields are uint64_t, since counts_add() adds them up. */
struct unwind_counts {
	uint64_t stacks;	/* stacks that were unwound */
	uint64_t by_heuristics; /* stacks with a frame found by heuristics, not by CFI */
	uint64_t ends[MSG_UNWIND_ENDS_MAX]; /* by enum unwind_end */
	/* Samples that were dropped because they lacked a part of the stack (hints_must_drop()). */
	uint64_t retaken;
	uint64_t malformed; /* records that broke the format */
	/* Addresses whose source lines were not read (unwind_space_take_lines_lost()). */
	uint64_t without_lines;
	/* Mappings with code that unwind does not read (unwind_space_take_far_mappings()). */
	uint64_t far_code;
	uint64_t unknown_releases; /* chunks with a release NAME@unknown */
	uint64_t cost_ns; /* time that unwind spent on the target, without waits for files */
};
/* MSG_UNWIND_STATS: the counters of a target since its session was opened. */
struct msg_unwind_stats {
	struct msg_header h;
	uint32_t target;
	uint32_t reserved;
	struct unwind_counts counts;
};

#define MSG_RECORDINGS_MAX 4 /* of a target, at a time */
/*
 * MSG_RECORDING_OPEN starts a recording, which a user has asked for
 * (daemon/broker/control/recordings.h). Until MSG_RECORDING_CLOSE, or until the session ends,
 * unwind makes a second series of chunks from the same records, under another profiler_id. If the
 * target has no session, unwind answers with MSG_RECORDING_CLOSED at once.
 */
struct msg_recording_open {
	struct msg_header h;
	uint32_t target;
	uint32_t recording; /* not 0; no other open recording of the target has this number */
	uint64_t chunk_us;  /* length of a chunk of the recording, at most 60 s */
	char profiler_id[MSG_ID_SIZE];
};
/*
 * MSG_RECORDING_CLOSE: send the last chunk of the recording and end it. Unwind ignores the message
 * if the recording has ended.
 *
 * MSG_RECORDING_LOST: a chunk of the recording has no payload.
 *
 * MSG_RECORDING_CLOSED: the recording has ended; the last message of each recording.
 */
struct msg_recording {
	struct msg_header h;
	uint32_t target;
	uint32_t recording;
};

/*
 * MSG_RECORDING_CHUNK: a finished chunk of a recording. The message carries the payload, for a
 * file, in a sealed memfd of size bytes.
 */
struct msg_recording_chunk {
	struct msg_header h;
	uint32_t target;
	uint32_t recording;
	uint64_t size;
};

/*
 * MSG_TABLE: write the table of programs and functions (functions_write()) to the descriptor that
 * the message carries. The table sums up all sessions that were opened with with_table set, also
 * those that are closed or forgotten. The answer is MSG_TABLE_DONE, with an errno as the id; 0: the
 * table is written.
 */
struct msg_table {
	struct msg_header h;
	uint32_t max_rows;   /* the most rows of the table */
	uint32_t full_names; /* 0: C++ and Rust names without template arguments and parameters */
};

/*
 * MSG_USAGE: the processor time and memory of n targets, at most MSG_USAGE_MAX. Unwind puts these
 * figures into the chunks of the targets, skips targets without a session, and answers with
 * MSG_USAGE_DONE. The broker sends the next MSG_USAGE only after this answer.
 */
#define MSG_USAGE_MAX 64
struct msg_usage_entry {
	uint32_t target;
	uint32_t reserved;
	uint64_t time_ns; /* of the reading, CLOCK_MONOTONIC */
	/*
	 * Processor time since the last reading, in millionths of a percent of one processor:
	 * 100,000,000 is one processor.
	 */
	uint64_t cpu_percent_millionths;
	uint64_t memory_bytes;	  /* resident (RSS) */
	uint64_t anonymous_bytes; /* the part of memory_bytes that is RssAnon */
};
struct msg_usage {
	struct msg_header h;
	uint32_t n;
	uint32_t reserved;
	struct msg_usage_entry v[MSG_USAGE_MAX];
};

/*
 * MSG_SYMBOLIZE: sentry-profctl convert --symbolize asks for the functions and lines at n
 * addresses of a file. The message carries the file: an executable, a library or a separate
 * debug file. Unwind can ask for debug files before it answers (FILE_KIND_DEBUG,
 * FILE_KIND_DEBUG_LINK; target is 0).
 */
#define MSG_SYMBOLIZE_MAX 1024
struct msg_symbolize {
	struct msg_header h;
	uint32_t n;
	uint32_t demangle; /* not 0: demangle the names of C++ and Rust, as for platform native */
	/*
	 * The identity that the file must have: the build-id in lower-case hex, or, if that is
	 * "", the debug_id (proto/debug_meta.h). If both are "", no file fits.
	 */
	char build_id[MSG_NAME_MAX];
	char debug_id[MSG_NAME_MAX];
	char name[MSG_NAME_MAX]; /* of the file, for functions without a symbol */
	/*
	 * The addresses, as offsets in bytes from the start of the first segment. The sender has
	 * subtracted one from a return address, so that it lies inside the call instruction.
	 */
	uint64_t offsets[MSG_SYMBOLIZE_MAX];
};

enum symbolize_verdict {
	SYMBOLIZE_DONE = 1,
	SYMBOLIZE_NOT_ELF,  /* the file is no ELF file for this processor */
	SYMBOLIZE_OTHER_ID, /* the file has another identity */
	SYMBOLIZE_NO_NAMES, /* the file names none of the addresses */
	SYMBOLIZE_NO_MEMORY,
};

/*
 * MSG_SYMBOLIZED, the answer. With SYMBOLIZE_DONE and SYMBOLIZE_NO_NAMES comes a sealed memfd
 * of size bytes, with an entry for each address, in the order of the addresses
 * (daemon/msg/symbolized.h).
 */
struct msg_symbolized {
	struct msg_header h;
	uint32_t verdict; /* enum symbolize_verdict */
	uint32_t reserved;
	uint64_t size;
};
/* Returns true if the message with this verdict carries the memfd. */
static inline bool msg_symbolized_has_answer(uint32_t verdict)
{
	return verdict == SYMBOLIZE_DONE || verdict == SYMBOLIZE_NO_NAMES;
}

/*
 * MSG_FILE_LOOK, from the broker or from sentry-profctl doctor: report what the ELF file that comes
 * with the message has for unwinding and for names, and whether it has LeakSanitizer. Unwind
 * answers with MSG_FILE_SEEN, which has the same id.
 *
 * number is the file number, as in struct msg_file_reply; doctor sends 0.
 */
struct msg_file_look {
	struct msg_header h;
	uint32_t id; /* chosen by the sender */
	uint32_t number;
};
enum file_verdict {
	FILE_READ = 1,
	FILE_NO_ELF,
	FILE_32_BIT,
	FILE_DAMAGED, /* or for another processor */
	FILE_VERDICT_END,
};
/* How a file brings LeakSanitizer into a process: as enum leak_runtime (lib/unwind/elf). */
enum file_leaks {
	FILE_LEAKS_NONE,
	FILE_LEAKS_ASAN, /* as part of AddressSanitizer */
	FILE_LEAKS_LSAN, /* LeakSanitizer alone */
	FILE_LEAKS_END,
};
struct msg_file_seen {
	struct msg_header h;
	uint32_t id;
	uint32_t verdict;      /* enum file_verdict; the fields below are valid with FILE_READ */
	uint32_t has_cfi;      /* for its code, or Go's table of functions in its place */
	uint32_t has_symbols;  /* a symbol table, or a packed one (.gnu_debugdata) */
	uint32_t has_go_table; /* Go's table of functions; 0 also if it is not needed */
	uint32_t has_debug_info;
	uint32_t leaks;		       /* enum file_leaks */
	uint32_t debug_crc;	       /* the checksum in .gnu_debuglink; valid with debug_link */
	char build_id[MSG_NAME_MAX];   /* in hex, "" if there is none */
	char debug_link[MSG_NAME_MAX]; /* the name in .gnu_debuglink, "" if there is none */
};

/* MSG_SESSION_OPEN_SIZE and so on: the size of each type's struct. */
enum {
#define X(type, name, fds) type##_SIZE = sizeof(struct name),
	MSG_UNWIND_LIST(X)
#undef X
};

#endif
