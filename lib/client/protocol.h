/*
 * The protocol of the daemon's control socket, a SOCK_SEQPACKET socket at PROTOCOL_SOCKET. Clients
 * are sentry-profctl, programs with libsentry_profd, and any other program that connects. A target
 * is a process that the daemon profiles; a section is a [target "NAME"] part of its configuration.
 *
 * Messages. A message is one datagram: a struct of this file in the host's byte order. The layout
 * is the same for 32-bit and 64-bit clients. The client first sends PROTOCOL_HELLO, then requests.
 * The daemon answers each message that has a tag by one PROTOCOL_ANSWER with the same tag, in the
 * order of the requests. It sends nothing else on this socket; a process reads its own state from a
 * shared page (struct protocol_page).
 *
 * The daemon answers DETACH and RELEASE when it traces no thread of the process any more, at most
 * 25 s later. Until then it reads no other message of this connection, which keeps the order. A
 * client with other requests meanwhile sends DETACH or RELEASE on a connection of its own, as
 * libsentry_profd does. Each connection costs the daemon one descriptor; an answer with a socket,
 * such as that of RECORD, costs two.
 *
 * Rights. The daemon identifies the client by SO_PEERCRED, which is the process that called
 * connect(2): a child that inherits a connection speaks for its parent. Operators are root of the
 * daemon's user and pid namespaces, the daemon's own user, and members of the group sentry-profd.
 *
 *     request                                        permitted to
 *     START, STOP, PROFILER_ID without pid and name  the client, about its own process
 *     SPANS_OPEN, SPANS_CLOSED, THREAD               the client, about its own process
 *     RELEASE without pid                            the client, about its own process
 *     START, STOP, PROFILER_ID of other processes    operators, and the user of the process
 *     ATTACH, DETACH, RELEASE, RECORD, WATCH         operators, and the user of the process
 *     RECORD_END                                     the client, about its own recordings
 *     RELOAD, CHECK                                  operators
 *     STATUS, METRICS, OPENMETRICS                   everybody
 *
 * Exceptions:
 * - The configuration (user_attach) may forbid ATTACH, RECORD and WATCH to users who are no
 *   operators, for processes that no section matches.
 * - A process that has changed its credentials, or that runs a file which its user may not read,
 *   counts as no user's: only operators have rights to it. Still, every client may name its own pid
 *   in START, STOP, PROFILER_ID, DETACH and RELEASE.
 * - A client that has executed another program, and has other credentials than when it connected,
 *   has no rights to its own process. Unless it is an operator, it has none to other processes
 *   either. Credentials are Uid, Gid and CapPrm of /proc/PID/status, and the owner of that file.
 * - STATUS and METRICS show the statistics of other users' processes only to operators and to
 *   members of the group sentry-profd-view.
 *
 * Limits. The daemon closes the connection of a client that sends an invalid message, that leaves
 * answers unread until its socket is full, or that has too many connections: more than 8 of a
 * process or 1,024 of a user. A client that sends faster than the daemon answers finds its socket
 * full: send with MSG_DONTWAIT, and on EAGAIN send the current state later. Every request describes
 * the wanted state, and none depends on an earlier one.
 *
 * Versions. A new version only adds, except that RECORD and WATCH need PROTOCOL_RECORD_VERSION.
 * HELLO is the same in all versions. An answer may have further members behind those of an earlier
 * version, up to PROTOCOL_SIZE_MAX: a client ignores what it does not know. The daemon serves every
 * version up to its own. It answers requests of a later one by PROTOCOL_BAD_VERSION.
 */
#ifndef LIB_CLIENT_PROTOCOL_H
#define LIB_CLIENT_PROTOCOL_H

#include <stdint.h>

/*
 * Version 2 added RECORD, WATCH and RECORD_END; 3: METRICS and OPENMETRICS; 4: CHECK; 5: RELEASE,
 * PROTOCOL_STATE_CRASHED, PROTOCOL_STATE_DETACHING and PROTOCOL_STATE_WAITING; 6: the chunks of
 * RECORD and WATCH come as bytes (struct protocol_recorded). Before version 5 the daemon answered
 * DETACH before it had detached.
 */
#define PROTOCOL_VERSION	6
#define PROTOCOL_RECORD_VERSION 6 /* RECORD and WATCH in an earlier one are refused */
/* "SPRF". A program that connects by mistake does not send these bytes. */
#define PROTOCOL_MAGIC UINT32_C(0x46525053)

#define PROTOCOL_SOCKET	    "/run/sentry-profd/profd.sock"
#define PROTOCOL_SOCKET_ENV "SENTRY_PROFD_SOCKET"

/* 32 hex digits, a NUL, and padding to a multiple of 4. */
#define PROTOCOL_ID_SIZE   36
#define PROTOCOL_NAME_SIZE 64  /* the NAME of a section [target "NAME"] */
#define PROTOCOL_TEXT_SIZE 256 /* a line for a human, NUL included */
/* The size of the largest message, in bytes, in either direction. */
#define PROTOCOL_SIZE_MAX 512

enum protocol_type {
	PROTOCOL_HELLO = 1,
	PROTOCOL_ANSWER,
	/* All further types are a struct protocol_request. About the client or a process: */
	PROTOCOL_START,	      /* start the profiler of a target with profile_lifecycle = manual */
	PROTOCOL_STOP,	      /* stop it */
	PROTOCOL_PROFILER_ID, /* return the id of the running profiler */
	/* About the client: */
	PROTOCOL_SPANS_OPEN,   /* sampled root spans are open now */
	PROTOCOL_SPANS_CLOSED, /* none is open any more; only for a client without a page */
	/*
	 * Return the id of a thread of the client in the daemon's pid namespace. The request's pid
	 * is the thread's id in the client's pid namespace, and the answer's pid is the thread's id
	 * in the daemon's.
	 */
	PROTOCOL_THREAD,
	/* About a process or the daemon: */
	PROTOCOL_ATTACH, /* profile a process, whether or not a section matches it */
	PROTOCOL_DETACH, /* detach until ATTACH, or until the process gets another section */
	PROTOCOL_STATUS, /* the answer carries a memfd of JSON */
	PROTOCOL_RELOAD, /* read the configuration again */
	/*
	 * Profile a process for this client, independently of what is sent to Sentry. The answer
	 * carries a SOCK_SEQPACKET socket, on which the daemon sends the chunks (struct
	 * protocol_recorded).
	 */
	PROTOCOL_RECORD,     /* chunks of up to a minute */
	PROTOCOL_WATCH,	     /* chunks of one second */
	PROTOCOL_RECORD_END, /* end all recordings of this connection */
	/* The answer carries a memfd of text, the metrics for Prometheus: */
	PROTOCOL_METRICS,     /* Prometheus' text format 0.0.4 */
	PROTOCOL_OPENMETRICS, /* OpenMetrics 1.0 */
	/*
	 * Check the configuration, whether each server accepts envelopes, and, with a pid, which
	 * section matches the process and why the others do not. The answer carries a socket, on
	 * which the daemon sends one struct protocol_checked within 90 s.
	 */
	PROTOCOL_CHECK,
	/* Detach from a process, and attach to it again after a number of seconds. */
	PROTOCOL_RELEASE,
	PROTOCOL_TYPE_END,
};

struct protocol_header {
	uint32_t type;
	uint32_t size; /* of the whole message, in bytes */
	uint32_t tag;  /* repeated in the answer; 0: do not answer */
};

/*
 * The first message. The answer has the version for this connection, the lower of the client's and
 * the daemon's. With the flag PROTOCOL_WANT_PAGE the answer carries a descriptor: a memfd that
 * holds a struct protocol_page.
 */
#define PROTOCOL_WANT_PAGE 1
struct protocol_hello {
	struct protocol_header h;
	uint32_t magic;
	uint32_t version; /* the client's; 1 or more */
	uint32_t flags;	  /* PROTOCOL_WANT_PAGE; other bits are ignored */
};

/*
 * The fields that each request uses; the others must be 0:
 * - START and STOP: pid is a process. Or pid is 0 and name is a section, for those of its processes
 *   that the user has rights to. Or pid is 0 and name is "", for the client itself. If no section
 *   matches the client yet, the answer is PROTOCOL_OK with PROTOCOL_STATE_NONE, and the daemon
 *   carries out the last of these requests when a section matches.
 * - PROFILER_ID: pid is a process; 0: the client itself.
 * - SPANS_OPEN, SPANS_CLOSED: none; they are about the client itself.
 * - THREAD: pid is a thread of the client, in the client's pid namespace.
 * - ATTACH and DETACH: pid is a process.
 * - RECORD and WATCH: pid, or the name of a section that has exactly one process.
 * - CHECK: pid is a process; 0: none, only the configuration and the servers.
 * - RELEASE: seconds; and pid, which is a process, or 0 for the client itself.
 * - STATUS, METRICS, OPENMETRICS, RELOAD, RECORD_END: none.
 *
 * SPANS_OPEN and SPANS_CLOSED set a state of the connection, so repeating one has no effect. The
 * state ends with the connection.
 */
struct protocol_request {
	struct protocol_header h;
	int32_t pid;
	union {
		char name[PROTOCOL_NAME_SIZE]; /* NUL-terminated; "": none */
		/*
		 * RELEASE: how long the daemon leaves the process alone, counted from its answer.
		 * 0: PROTOCOL_RELEASE_S. More than PROTOCOL_RELEASE_MAX_S counts as that.
		 */
		uint32_t seconds;
	};
};

#define PROTOCOL_RELEASE_S     30
#define PROTOCOL_RELEASE_MAX_S 86400

enum protocol_result {
	PROTOCOL_OK,
	/* Nothing has changed, which is not an error: */
	PROTOCOL_RUNS_ALREADY,
	PROTOCOL_NOT_RUNNING,
	PROTOCOL_NOT_SAMPLED, /* excluded by profile_session_sample_rate */
	PROTOCOL_TRACE_MODE,  /* root spans start and stop the profiler */
	PROTOCOL_LEFT_OUT,    /* the process was detached, or made the profiler hang */
	/* Refused; text tells the user what to do: */
	PROTOCOL_DENIED,      /* the client does not have the rights above */
	PROTOCOL_NO_PROCESS,  /* no process or thread has this pid */
	PROTOCOL_NO_TARGET,   /* the process is not a target, or there is no section of this name */
	PROTOCOL_BAD_VERSION, /* the request does not belong to the version of the connection */
	PROTOCOL_BUSY,	      /* a limit on requests, recordings or attached processes is reached */
	/* Any other reason. DETACH, RELEASE: meanwhile the process was attached again. */
	PROTOCOL_FAILED,
	/* DETACH, RELEASE: the daemon still traces the process, and goes on to detach. */
	PROTOCOL_TIMED_OUT,
};

/* The state of a target. The words in quotes are those of STATUS. */
enum protocol_state {
	PROTOCOL_STATE_NONE,		/* the process is not a target */
	PROTOCOL_STATE_PROFILING,	/* "profiling" */
	PROTOCOL_STATE_STOPPED,		/* "stopped": can be started */
	PROTOCOL_STATE_UNSAMPLED,	/* "unsampled": excluded by profile_session_sample_rate */
	PROTOCOL_STATE_LIMITED,		/* "limited": the server accepts no profiles for now */
	PROTOCOL_STATE_TRACED_BY_OTHER, /* "traced_by_other": until the other tracer detaches */
	PROTOCOL_STATE_LEFT_OUT,	/* "left_out" */
	PROTOCOL_STATE_CRASHED,		/* "crashed": until its crash handler is left, or it ends */
	PROTOCOL_STATE_DETACHING, /* "detaching": to be left out; the daemon still traces it */
	PROTOCOL_STATE_WAITING,	  /* "waiting": for a limit, or its user's part of the CPU budget */
};

/*
 * The answer to HELLO has version. Answers to requests about a target have pid and state, and
 * profiler_id if a profiler runs or is started by the request. If fd_bytes > 0, the message carries
 * a memfd of that size: the JSON of STATUS (sealed), the text of METRICS or OPENMETRICS (sealed),
 * or the faults that RELOAD has found, one a line. With the page of HELLO and the sockets of
 * RECORD, WATCH and CHECK fd_bytes is 0.
 */
struct protocol_answer {
	struct protocol_header h;
	uint32_t result; /* enum protocol_result */
	uint32_t version;
	int32_t pid;
	uint32_t state; /* enum protocol_state */
	uint32_t fd_bytes;
	/*
	 * START and STOP of a name: number of processes that were started or stopped. DETACH and
	 * RELEASE: pid of a tracer of the process that does not belong to the daemon; 0: none.
	 * PROFILER_ID: 1 if samples are taken, 0 if not, or not yet.
	 */
	uint32_t count;
	char profiler_id[PROTOCOL_ID_SIZE]; /* "": none */
	/*
	 * For the user; "" if there is nothing to tell. START and STOP of a name: why other
	 * processes did not change. RECORD and WATCH, with PROTOCOL_OK: what the configuration
	 * keeps out of the recording.
	 */
	char text[PROTOCOL_TEXT_SIZE];
};

/*
 * A message on the socket of a recording: this struct, and the bytes behind it, up to the end of
 * the message. The message has at most PROTOCOL_RECORDED_MAX bytes.
 *
 * A chunk, which is a "profile_chunk" item of Sentry (JSON), comes in pieces, one a message and in
 * order. It is complete when `at` plus the bytes of the piece are `size`. A piece with at == 0
 * begins a chunk. If the chunk before it was not complete, that chunk is lost, and `lost` counts
 * it.
 *
 * The daemon does not wait for the client. It discards chunks, and counts them as lost, if
 * - the client has not read the recording for 5 s;
 * - the chunks and the unread messages of one user's recordings have more than PROTOCOL_CHUNK_MAX
 *   bytes;
 * - eight chunks of the recording wait; or
 * - the recording has exceeded its rate, 4 MB a second; up to a minute's unused rate is saved.
 *
 * The recording ends without a message
 * - when the connection that requested it is closed; or
 * - when the client has closed the socket of the recording, which the daemon notices at the next
 *   chunk.
 *
 * Any other end has one of the reasons DONE, NO_PROCESS, LEFT_OUT and SHUTDOWN below. The daemon
 * sends the last chunk, and then a final message. In the final message `end` is the reason, and the
 * bytes are a text for the user (no NUL), or "". A client that has lost its rights to the process
 * (LEFT_OUT) gets the final message only.
 */
enum protocol_record_end {
	PROTOCOL_RECORD_GOES_ON,    /* the message has a piece of a chunk */
	PROTOCOL_RECORD_DONE,	    /* ended by RECORD_END */
	PROTOCOL_RECORD_NO_PROCESS, /* the process has ended */
	PROTOCOL_RECORD_LEFT_OUT,   /* the process cannot be profiled; the text has the reason */
	PROTOCOL_RECORD_SHUTDOWN,   /* the daemon shuts down */
	/*
	 * The recording goes on. The bytes are a text for the user, to follow "the process is": why
	 * no samples are taken now, or that they are taken again.
	 */
	PROTOCOL_RECORD_NOTE,
};
struct protocol_recorded {
	uint32_t end;  /* enum protocol_record_end */
	uint32_t lost; /* chunks so far that could not be sent */
	uint32_t size; /* bytes of the whole chunk: at most PROTOCOL_CHUNK_MAX */
	uint32_t at;   /* where in the chunk the bytes of this message belong */
};
#define PROTOCOL_CHUNK_MAX (16u << 20)
/* With its own overhead, the kernel needs 16 KB for such a message. */
#define PROTOCOL_RECORDED_MAX 16000

/* The result of CHECK: the message carries a sealed memfd of this many bytes, text for the user. */
struct protocol_checked {
	uint32_t bytes;
	uint32_t reserved;
};

enum protocol_lifecycle {
	PROTOCOL_MANUAL,
	PROTOCOL_TRACE,
};

enum protocol_thread_id {
	PROTOCOL_TID,	  /* gettid(2), in the daemon's pid namespace */
	PROTOCOL_PTHREAD, /* pthread_self(3) */
};

/*
 * What the daemon knows of the client's process, kept up to date in a memfd that the client maps
 * shared. So the client needs no system call to read it. The memfd's size is sealed (the client
 * must check F_SEAL_SHRINK), so that reading cannot fault. In later versions the struct may be
 * longer.
 *
 * Reading: read sequence, then the fields, then sequence again. An odd number means that the daemon
 * is writing; a changed number means that the fields may be inconsistent. In both cases try again.
 * A write takes a microsecond: if 100 tries fail, the daemon is preempted, and the client gives up.
 * sequence covers the fields up to profiler_id; the fields behind it are independent. After the
 * connection has ended the daemon no longer writes to the page.
 *
 * beat: the daemon increments it about once a second. If it has not changed for some seconds, the
 * client should check whether the connection has ended.
 *
 * spans_open, wants_open: root spans can begin and end thousands of times a second. The daemon
 * needs to know of the first one while it does not profile, and whether one is open when a chunk
 * ends. So the client keeps spans_open up to date, and the daemon reads it several times a second.
 * While the daemon wants to know of the first span at once, wants_open is 1:
 *
 *     client: sets spans_open to 1, then sends PROTOCOL_SPANS_OPEN if wants_open is 1
 *     daemon: sets wants_open to 1, then reads spans_open
 *
 * All four accesses are sequentially consistent, so at least one side sees the other's write.
 *
 * The client writes spans_open and is_traced only. It could write the other fields, but the daemon
 * never reads those.
 */
struct protocol_page {
	uint32_t sequence;   /* atomic: load-acquire before and after the fields */
	uint32_t state;	     /* enum protocol_state */
	uint32_t lifecycle;  /* enum protocol_lifecycle */
	uint32_t is_sampled; /* 0: excluded by profile_session_sample_rate */
	uint32_t thread_id;  /* enum protocol_thread_id */
	/*
	 * The id of the running profiler; if none runs, the id that the next start will use. "" if
	 * the process is not a target.
	 */
	char profiler_id[PROTOCOL_ID_SIZE];

	uint32_t beat; /* atomic */
	/*
	 * atomic: number of STARTs and STOPs about the client itself on this connection that the
	 * daemon has decided on, refused ones included; not those that wait for a section
	 */
	uint32_t handled;
	uint32_t is_other_ns;  /* the client is in another pid namespace than the daemon */
	uint32_t wants_open;   /* atomic */
	uint32_t pid;	       /* the client's, in the daemon's pid namespace */
	uint32_t reserved[13]; /* keeps the client's fields on another cache line */

	uint32_t spans_open; /* atomic: 1 while sampled root spans are open */
	uint32_t is_traced;  /* atomic: 1 after the first root span of any kind */
};

_Static_assert(sizeof(struct protocol_hello) == 24, "no padding");
_Static_assert(sizeof(struct protocol_request) == 80, "no padding");
_Static_assert(sizeof(struct protocol_answer) == 328, "no padding");
_Static_assert(sizeof(struct protocol_page) == 136, "no padding");
_Static_assert(sizeof(struct protocol_recorded) == 16, "no padding");
_Static_assert(sizeof(struct protocol_answer) <= PROTOCOL_SIZE_MAX, "fits");

#endif
