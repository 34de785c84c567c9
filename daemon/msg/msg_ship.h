/*
 * What the broker and ship say to each other. To a ship of its own,
 * sentry-profctl send (daemon/ctl/send.h) says what the broker does.
 * daemon/msg/msg.h says what holds for all messages.
 */
#ifndef DAEMON_MSG_MSG_SHIP_H
#define DAEMON_MSG_MSG_SHIP_H

#include "daemon/msg/msg.h"

/*
 * Where envelopes go. "" or no such message: nowhere, files only. A ship before
 * has said MSG_LIMITED until then; 0: none.
 */
struct msg_dsn {
	struct msg_header h;
	uint64_t limited_until_ns;
	uint32_t retry_5xx;   /* 502, 503 and 504 are as good as no answer */
	uint32_t no_reports;  /* the server is told of no losses */
	uint32_t compression; /* enum compression (lib/ship/compression.h) */
	uint32_t kind;	      /* MSG_LIMITED is about: enum envelope_kind */
	/*
	 * dsn is the URL of a Spotlight (dsn_parse_url). It has no limits and
	 * gets no reports. An envelope that it did not answer is sent once
	 * more.
	 */
	uint32_t is_spotlight;
	uint32_t reserved;
	char dsn[MSG_DSN_MAX];
};

/*
 * An envelope to make of a chunk: written to a file, sent, or both. With it:
 * the payload's memfd; then, if to_file, the file, empty and open for writing;
 * then, if file_size is not 0, the memfd of the payload that goes into the file
 * in place of the first; or, if anchor_size is not 0, which excludes a file,
 * the memfd of a transaction that refers to the chunk. No more than
 * MSG_ENVELOPES_MAX are unanswered at a time, which ship's queue and its socket
 * hold: a hundred targets' chunks are made at the same tick.
 */
#define MSG_ENVELOPES_MAX 24
struct msg_envelope {
	struct msg_header h;
	uint64_t seq; /* counts up */
	uint64_t size;
	uint64_t transaction_size; /* see lib/ship/package.h */
	uint64_t file_size;	   /* 0 unless to_file */
	uint64_t anchor_size;	   /* 0 if to_file, or with a transaction_size */
	uint32_t to_file;
	uint32_t to_server;
	char chunk_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
};

/*
 * What became of an envelope that is not lost; of one that is lost, enum
 * discard says why, whose values are all larger.
 */
enum ship_result {
	SHIP_NOTHING, /* was not asked for */
	SHIP_DONE,    /* answered by 2xx */
	SHIP_SPOOLED, /* there was no answer: it is sent later */
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
	uint32_t result; /* enum ship_result, or enum discard */
	uint32_t reserved;
};

/*
 * Chunks and V1 profiles that were lost before they were envelopes, or on their
 * way to ship: the server is told of them. ship knows of its own.
 */
struct msg_lost {
	struct msg_header h;
	uint64_t quantity; /* > 0 */
	uint32_t reason;   /* enum client_report_reason */
	uint32_t kind;	   /* enum envelope_kind */
};

/*
 * MSG_SHIP_FINISH, with a timeout in ns: the end is near. Send for so long,
 * then put into the spool what is left, or give it up. Each envelope is
 * answered as ever.
 */

/* The largest file of certificates or keys: a system's bundle has 220 kB, a chain some. */
#define MSG_CA_CERTS_BYTES_MAX	  (4u << 20)
#define MSG_CLIENT_CERT_BYTES_MAX (256u << 10)

/*
 * The files of certificates as a reload has found them, beside it: for each bit
 * of files one, by enum init_file, without INIT_SPOOL. They take the place of
 * all that there were.
 */
struct msg_certificates {
	struct msg_header h;
	uint32_t files;
	uint32_t reserved;
};

/* No more than uint64_t: figures_add_counts adds them up. */
struct spool_counts {
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
/* The spool, when something has changed. */
struct msg_spool {
	struct msg_header h;
	struct spool_counts counts;
};

/*
 * MSG_LIMITED, with a time by CLOCK_BOOTTIME in ns: the server takes none of
 * the kind that is made until then, no longer than RATELIMIT_MAX_S from now
 * (proto/ratelimit.h). Sent when that has changed.
 */

/* Clocks that differ by more are told of: chunks carry the times of ours. */
#define MSG_CLOCK_MAX_S 5

/*
 * By how many seconds the server's clock is ahead of ours, as the Date of its
 * last answer says: when that has changed. 0 before the first.
 */
struct msg_clock {
	struct msg_header h;
	int64_t ahead_s;
};

/*
 * MSG_PROBE, to a ship that has a DSN: does the server take envelopes? When the
 * request that is under way has ended, ship posts an envelope that says that
 * nothing was lost, and answers with MSG_PROBED. So it uses the connection,
 * certificates, proxy and sandbox that chunks go through. While a rate limit on
 * everything holds nothing is posted, and the answer is status 429.
 */
struct msg_probed {
	struct msg_header h;
	int32_t status;		 /* HTTP's; 0: there was no answer */
	uint32_t fault;		 /* enum transport_fault, with status 0 */
	int64_t clock_ahead_s;	 /* as in MSG_CLOCK */
	char text[MSG_TEXT_MAX]; /* the server's X-Sentry-Error, or libcurl's */
};

/* MSG_DSN_SIZE and so on: the size of each type's struct. */
enum {
#define X(type, name, fds) type##_SIZE = sizeof(struct name),
	MSG_SHIP_LIST(X)
#undef X
};

#endif
