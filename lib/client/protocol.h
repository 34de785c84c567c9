/*
 * What is said on the daemon's socket, by sentry-profctl, by libsentry_profd
 * and by whoever else connects: SOCK_SEQPACKET at PROTOCOL_SOCKET.
 *
 * A message is one datagram, a struct of this file as it stands, in the host's
 * byte order; its fields lie at the same places for 32-bit callers. The first
 * one of a connection is PROTOCOL_HELLO. Then come requests; those with a tag
 * are answered, each by one PROTOCOL_ANSWER with the same tag, in their order.
 * The daemon says nothing that it was not asked for; what a process wants to
 * know of itself at any time stands in a page (struct protocol_page).
 *
 * Who is there the daemon knows from the kernel (SO_PEERCRED: the process that
 * called connect(2), so a child that inherits a connection speaks for its
 * parent). root and the group sentry-profd may make every request, others those
 * about processes of their own; all may ask for STATUS and METRICS
 * (daemon/broker/control/rights.h says what strangers see there).
 *
 * The daemon waits for nobody: who sends what is no message, leaves answers
 * unread until his socket is full, or has too many connections loses his
 * connection. One who sends faster than is answered finds his socket full:
 * send with MSG_DONTWAIT, and say later what holds then; all requests say what
 * is to be, none counts on an earlier one.
 *
 * A version only adds. HELLO and its answer are the same in all of them, and
 * the daemon serves every version up to its own: what is in a later one it
 * refuses there.
 */
#ifndef LIB_CLIENT_PROTOCOL_H
#define LIB_CLIENT_PROTOCOL_H

#include <stdint.h>

/* 2: RECORD, WATCH and RECORD_END; 3: METRICS and OPENMETRICS; 4: CHECK. */
#define PROTOCOL_VERSION 4
/* "SPRF": no stray program's first bytes. */
#define PROTOCOL_MAGIC UINT32_C(0x46525053)

#define PROTOCOL_SOCKET	    "/run/sentry-profd/profd.sock"
#define PROTOCOL_SOCKET_ENV "SENTRY_PROFD_SOCKET"

/* 32 hex digits, a NUL, and what makes it a multiple of 4. */
#define PROTOCOL_ID_SIZE   36
#define PROTOCOL_NAME_SIZE 64  /* of a section [target "NAME"] */
#define PROTOCOL_TEXT_SIZE 256 /* a line for a human, NUL included */
/* No message of either direction is longer. */
#define PROTOCOL_SIZE_MAX 512

enum protocol_type {
	PROTOCOL_HELLO = 1,
	PROTOCOL_ANSWER,
	/* struct protocol_request: of the operator, and of a process itself */
	PROTOCOL_START,	      /* a manual target's profiler */
	PROTOCOL_STOP,	      /* and its end */
	PROTOCOL_PROFILER_ID, /* of the profiler that runs */
	/* the same, of a process itself alone (pid 0) */
	PROTOCOL_SPANS_OPEN,   /* it has sampled root spans now */
	PROTOCOL_SPANS_CLOSED, /* it has none any more; without a page only */
	/* the same: pid is its thread's, the answer's pid is the daemon's */
	PROTOCOL_THREAD,
	/* the same, of the operator */
	PROTOCOL_ATTACH, /* a process that need not be configured */
	PROTOCOL_DETACH, /* let go of it and leave it alone */
	PROTOCOL_STATUS, /* a memfd of JSON comes with the answer */
	PROTOCOL_RELOAD, /* the configuration */
	/*
	 * The same, of the operator: a profile of a process for the caller
	 * alone, whatever Sentry gets. The answer has a socket, SOCK_SEQPACKET,
	 * on which struct protocol_recorded come.
	 */
	PROTOCOL_RECORD,     /* in chunks of up to a minute */
	PROTOCOL_WATCH,	     /* in chunks of a second */
	PROTOCOL_RECORD_END, /* of all of this connection */
	/* A memfd of text comes with the answer: the figures for Prometheus */
	PROTOCOL_METRICS,     /* in Prometheus' text format 0.0.4 */
	PROTOCOL_OPENMETRICS, /* in that of OpenMetrics 1.0 */
	/*
	 * Of the operator: what is wrong with the configuration, whether each
	 * server takes envelopes, and, with a pid, which section the process
	 * belongs to and why not to the others. The answer has a socket, on
	 * which one struct protocol_checked comes, in up to 90 s.
	 */
	PROTOCOL_CHECK,
	PROTOCOL_TYPE_END,
};

struct protocol_header {
	uint32_t type;
	uint32_t size; /* of the whole message */
	uint32_t tag;  /* 0: no answer, please */
};

/*
 * The first message. Its answer tells the version that both speak from now on:
 * the lower of the two. With PROTOCOL_WANT_PAGE a descriptor comes with the
 * answer: a memfd that holds a struct protocol_page.
 */
#define PROTOCOL_WANT_PAGE 1
struct protocol_hello {
	struct protocol_header h;
	uint32_t magic;
	uint32_t version; /* the caller's; 1 or more */
	uint32_t flags;	  /* others are ignored */
};

/*
 * START and STOP take a process, or with a name and pid 0 all those of a
 * section; with neither they mean the caller himself, as do PROFILER_ID and
 * SPANS_*. ATTACH and DETACH take a pid; RECORD and WATCH a pid, or the name of
 * a section that has one process; CHECK a pid or nothing; STATUS, METRICS,
 * OPENMETRICS, RELOAD and RECORD_END nothing. What a request does not take is
 * 0.
 *
 * SPANS_OPEN and SPANS_CLOSED tell a state: the same twice is one. It is the
 * connection's, and ends with it.
 */
struct protocol_request {
	struct protocol_header h;
	int32_t pid;
	char name[PROTOCOL_NAME_SIZE]; /* "": none; has a NUL */
};

enum protocol_result {
	PROTOCOL_OK,
	/* Nothing has changed, and that is no fault. */
	PROTOCOL_RUNS_ALREADY,
	PROTOCOL_NOT_RUNNING,
	PROTOCOL_NOT_SAMPLED, /* the session's decision */
	PROTOCOL_TRACE_MODE,  /* its root spans start and stop it */
	PROTOCOL_LEFT_OUT,    /* detached, or it made the profiler hang */
	/* Refused; text says what can be done. */
	PROTOCOL_DENIED,
	PROTOCOL_NO_PROCESS,
	PROTOCOL_NO_TARGET,   /* the process, or the name, is no target */
	PROTOCOL_BAD_VERSION, /* the request is of a later version */
	PROTOCOL_BUSY,	      /* too much at a time: later */
	PROTOCOL_FAILED,
};

/* What a target is doing. Those of the status, in its words. */
enum protocol_state {
	PROTOCOL_NONE,		  /* no target */
	PROTOCOL_PROFILING,	  /* "profiling" */
	PROTOCOL_STOPPED,	  /* "stopped": it may be started */
	PROTOCOL_UNSAMPLED,	  /* "unsampled": the session's decision */
	PROTOCOL_LIMITED,	  /* "limited": the server takes nothing */
	PROTOCOL_TRACED_BY_OTHER, /* "traced_by_other": until that lets go */
	PROTOCOL_IS_LEFT_OUT,	  /* "left_out" */
};

/*
 * To HELLO: version. To requests about a target: pid and state, and the
 * profiler's id where one runs or starts by this request. With fd_bytes > 0
 * comes a sealed memfd of so many bytes: STATUS' JSON, METRICS' text, or
 * the lines of a RELOAD's faults.
 */
struct protocol_answer {
	struct protocol_header h;
	uint32_t result; /* enum protocol_result */
	uint32_t version;
	int32_t pid;
	uint32_t state; /* enum protocol_state */
	uint32_t fd_bytes;
	uint32_t count;			    /* START, STOP of a name: how many of it changed */
	char profiler_id[PROTOCOL_ID_SIZE]; /* "": none */
	/* "": nothing to say. START, STOP of a name: why others did not change
	 */
	char text[PROTOCOL_TEXT_SIZE];
};

/*
 * What comes on the socket of a recording. It goes on until a RECORD_END, the
 * end of the connection that asked for it, or the end of the process; then the
 * last chunk comes, and a last message with an end.
 */
enum protocol_record_end {
	PROTOCOL_RECORD_GOES_ON,    /* a chunk comes with it: a sealed memfd */
	PROTOCOL_RECORD_DONE,	    /* as was asked */
	PROTOCOL_RECORD_NO_PROCESS, /* it has ended */
	PROTOCOL_RECORD_LEFT_OUT,   /* it cannot be profiled: text says why */
	PROTOCOL_RECORD_SHUTDOWN,   /* the daemon ends */
};
struct protocol_recorded {
	uint32_t end;	/* enum protocol_record_end */
	uint32_t lost;	/* chunks so far that did not become a message */
	uint32_t bytes; /* of the chunk: a V2 payload */
	uint32_t reserved;
	char text[PROTOCOL_TEXT_SIZE]; /* as in struct protocol_answer */
};

/* The answer to a CHECK: with it a sealed memfd of lines for a human. */
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
 * What the daemon says of the process that connected, always up to date, so
 * that the caller needs no system call and no answer: a memfd that he maps
 * shared. Its size is sealed (F_SEAL_SHRINK: check that), reading never faults;
 * it may grow with versions.
 *
 * To read it: sequence; an odd one means that it is being written; the fields;
 * then sequence again: another one means that they may not belong together.
 * The daemon writes in a microsecond; a reader gives up after a few attempts.
 * After the connection's end nothing is written any more. The fields behind
 * profiler_id stand for themselves.
 *
 * beat counts up about once a second. One that stands still for some seconds is
 * a reason to look whether the connection has ended.
 *
 * Root spans come and go by the thousand in a second, and the daemon wants to
 * know of the first one when it does not profile, and of the last one when a
 * chunk is finished. So the caller keeps spans_open, which the daemon looks at
 * several times a second, and sends PROTOCOL_SPANS_OPEN only if, after he set
 * it to 1, wants_open is 1. The daemon sets wants_open first and looks then
 * (both sequentially consistent): one of them sees the other's.
 *
 * The caller writes from spans_open on. He can write the rest as well: the
 * daemon reads none of that back.
 */
struct protocol_page {
	uint32_t sequence;   /* atomic: acquire before, and again after */
	uint32_t state;	     /* enum protocol_state */
	uint32_t lifecycle;  /* enum protocol_lifecycle */
	uint32_t is_sampled; /* the session's decision */
	uint32_t thread_id;  /* enum protocol_thread_id */
	/*
	 * Of the profiler that runs, or else of the one that the next start
	 * will be, so that it is known before that: "" for no target.
	 */
	char profiler_id[PROTOCOL_ID_SIZE];

	uint32_t beat;	       /* atomic */
	uint32_t handled;      /* atomic: START and STOP of this connection */
	uint32_t is_other_ns;  /* his pids are not the daemon's */
	uint32_t wants_open;   /* atomic */
	uint32_t pid;	       /* his, in the daemon's pid namespace */
	uint32_t reserved[13]; /* what he writes shares no line with the rest */

	uint32_t spans_open; /* atomic: 1 while sampled root spans are open */
	uint32_t is_traced;  /* atomic: 1 after the first root span of any kind */
};

_Static_assert(sizeof(struct protocol_hello) == 24, "no padding");
_Static_assert(sizeof(struct protocol_request) == 80, "no padding");
_Static_assert(sizeof(struct protocol_answer) == 328, "no padding");
_Static_assert(sizeof(struct protocol_page) == 136, "no padding");
_Static_assert(sizeof(struct protocol_recorded) == 272, "no padding");
_Static_assert(sizeof(struct protocol_answer) <= PROTOCOL_SIZE_MAX, "fits");

#endif
