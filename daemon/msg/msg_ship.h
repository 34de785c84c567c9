/*
 * Messages between the broker and ship. sentry-profctl send (daemon/ctl/send.h) takes the
 * broker's part for a ship of its own. daemon/msg/msg.h says what holds for all messages.
 */
#ifndef DAEMON_MSG_MSG_SHIP_H
#define DAEMON_MSG_MSG_SHIP_H

#include "daemon/msg/msg.h"

/*
 * The destination of envelopes. With an empty dsn, or without this message, ship sends nothing and
 * writes files only.
 * limited_until_ns is what a former ship reported by MSG_LIMITED; 0: no limit.
 */
struct msg_dsn {
	struct msg_header h;
	uint64_t limited_until_ns;
	uint32_t retry_5xx;   /* send an envelope again after 502, 503 and 504 */
	uint32_t no_reports;  /* send the server no reports of losses */
	uint32_t compression; /* enum compression (lib/ship/compression.h) */
	uint32_t kind;	      /* of the envelopes that are limited: enum envelope_kind */
	/*
	 * dsn is the URL of a Spotlight (dsn_parse_url), which has no limits and gets no
	 * reports. Ship sends an envelope once more if Spotlight did not answer.
	 */
	uint32_t is_spotlight;
	uint32_t reserved;
	char dsn[MSG_DSN_MAX];
};

/*
 * A chunk to make an envelope of and to write to a file, to send, or both.
 *
 * The message carries, in this order: the memfd of the payload; if to_file, the file, empty and
 * open for writing; if file_size is not 0, the memfd of another payload, for the file; if
 * anchor_size is not 0, the memfd of a transaction that refers to the chunk. anchor_size excludes a
 * file.
 *
 * No more than MSG_ENVELOPES_MAX of these messages are unanswered at a time: ship's queue and
 * socket have room for so many. The chunks of a hundred targets can be made at the same tick.
 */
#define MSG_ENVELOPES_MAX 24
struct msg_envelope {
	struct msg_header h;
	uint64_t seq; /* one more for each envelope */
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
 * The outcome for an envelope that is not lost. For a lost one the outcome is an enum discard
 * (daemon/msg/discard.h), whose values are larger.
 */
enum ship_result {
	SHIP_NOT_SENT, /* sending was not asked for */
	SHIP_DONE,     /* the server answered with 2xx */
	SHIP_SPOOLED,  /* the server did not answer; the spool has the envelope */
};

/*
 * The envelope has been written to its file, or writing failed. Sent at once for each
 * envelope with to_file; the outcome of sending can take long.
 */
struct msg_envelope_written {
	struct msg_header h;
	uint64_t seq;
	int32_t error; /* errno, or 0 */
	uint32_t reserved;
};

/* The outcome of an envelope: the last message about it. */
struct msg_envelope_done {
	struct msg_header h;
	uint64_t seq;
	uint32_t result; /* enum ship_result or enum discard */
	uint32_t reserved;
};

/*
 * Chunks and V1 profiles that were lost before ship received them, for the reports to the server.
 * Ship counts its own losses itself.
 */
struct msg_lost {
	struct msg_header h;
	uint64_t quantity; /* above 0 */
	uint32_t reason;   /* enum client_report_reason */
	uint32_t kind;	   /* enum envelope_kind */
};

/*
 * MSG_SHIP_FINISH, with a timeout in ns: the daemon ends. Ship goes on sending until the
 * timeout, then puts the remaining envelopes into the spool, or discards them. It answers
 * each envelope as before.
 */

/* The largest file of certificates or keys: a system's bundle has 220 kB, a chain some. */
#define MSG_CA_CERTS_BYTES_MAX	  (4u << 20)
#define MSG_CLIENT_CERT_BYTES_MAX (256u << 10)

/*
 * The certificates and keys after a reload, which replace all that ship had. The message carries
 * one descriptor for each bit of files, by enum init_file; INIT_SPOOL is never set.
 */
struct msg_certificates {
	struct msg_header h;
	uint32_t files;
	uint32_t reserved;
};

/* Counters of a spool. All fields are uint64_t, since counts_add() adds them up. */
struct spool_counts {
	uint64_t count; /* chunks that wait in the spool now */
	uint64_t bytes; /* the size of these chunks */
	/* The outcome of chunks that have left the spool since this process was started. */
	uint64_t sent;
	uint64_t refused; /* by the server, with a status */
	uint64_t rate_limited;
	uint64_t overflow; /* dropped to make room for newer chunks */
	uint64_t expired;
	uint64_t set_aside; /* damaged, or not written by the daemon */
};
/* Sent when a counter has changed. */
struct msg_spool {
	struct msg_header h;
	struct spool_counts counts;
};

/*
 * MSG_LIMITED, with a time by CLOCK_BOOTTIME in ns: until then the server accepts no envelopes
 * of the kind that is made; at most RATELIMIT_MAX_S from now (proto/ratelimit.h). Sent when
 * the time has changed.
 */

/* Differences between clocks above this are reported: chunks carry the times of this host. */
#define MSG_CLOCK_MAX_S 5

/*
 * The number of seconds by which the server's clock is ahead of this host's, by the Date of its
 * last answer. Sent when the difference has changed; 0 before the first answer.
 */
struct msg_clock {
	struct msg_header h;
	int64_t ahead_s;
};

/*
 * MSG_PROBE, to a ship that has a DSN: find out whether the server accepts envelopes. Ship
 * posts an envelope with an empty client report when the current request has ended, so the
 * probe uses the connection, the certificates, the proxy and the sandbox of chunks. While
 * the server has set a rate limit on everything, ship posts nothing and answers with 429.
 */
struct msg_probed {
	struct msg_header h;
	int32_t status;		 /* of HTTP; 0: no answer */
	uint32_t fault;		 /* enum transport_fault, with status 0 */
	int64_t clock_ahead_s;	 /* as in MSG_CLOCK */
	char text[MSG_TEXT_MAX]; /* X-Sentry-Error of the server, or the message of libcurl */
};

/* MSG_DSN_SIZE and so on: the size of each type's struct. */
enum {
#define X(type, name, fds) type##_SIZE = sizeof(struct name),
	MSG_SHIP_LIST(X)
#undef X
};

#endif
