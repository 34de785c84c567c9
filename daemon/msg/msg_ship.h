/*
 * Messages between the broker and ship. sentry-profctl send (daemon/ctl/send.h) takes the
 * broker's part for a ship of its own. daemon/msg/msg.h says what holds for all messages.
 */
#ifndef DAEMON_MSG_MSG_SHIP_H
#define DAEMON_MSG_MSG_SHIP_H

#include "daemon/msg/msg.h"

/*
 * MSG_DSN, once, after MSG_INIT: the DSN, which is the destination of envelopes: a URL of a Sentry
 * server, with a key. If dsn is "", or without this message, ship sends nothing and writes files
 * only.
 */
struct msg_dsn {
	struct msg_header h;
	/*
	 * The time of the last MSG_LIMITED of an earlier ship process (CLOCK_BOOTTIME): until then
	 * the server accepts no envelopes of the kind below; 0: no limit.
	 */
	uint64_t limited_until_ns;
	uint32_t retry_5xx;   /* send an envelope again after the HTTP status 502, 503 or 504 */
	uint32_t no_reports;  /* send the server no reports of losses */
	uint32_t compression; /* enum compression (lib/ship/compression.h) */
	/* The kind that the daemon makes now: enum envelope_kind (proto/envelope.h). */
	uint32_t kind;
	/*
	 * dsn is the URL of Spotlight (dsn_parse_url()), Sentry's viewer on a developer's own
	 * machine. Spotlight has no limits and gets no reports. If Spotlight does not answer,
	 * ship sends an envelope once more, and then drops it.
	 */
	uint32_t is_spotlight;
	uint32_t denial; /* the status of an earlier ship's last MSG_DENIED; 0: none */
	char dsn[MSG_DSN_MAX];
};

/*
 * MSG_ENVELOPE: a chunk (daemon/msg/msg_unwind.h). Ship makes an envelope of the chunk, and writes
 * the envelope to a file (to_file), sends it (to_server), or both.
 *
 * The message carries, in this order:
 * - the sealed memfd of the payload, as those below;
 * - if to_file, the file, empty and open for writing;
 * - if file_size is not 0, the memfd of another payload, for the file;
 * - if anchor_size is not 0, the memfd of the anchor (struct msg_chunk). An envelope with an
 *   anchor is for Spotlight, so it has no file.
 *
 * At any time at most MSG_ENVELOPES_MAX envelopes wait for their MSG_ENVELOPE_DONE, because ship's
 * queue and socket have room for no more. The broker keeps further chunks until an answer comes: a
 * hundred targets can finish a chunk at the same tick.
 */
#define MSG_ENVELOPES_MAX 24
struct msg_envelope {
	struct msg_header h;
	uint64_t seq;		   /* greater than that of each earlier envelope */
	uint64_t size;		   /* of the payload, in bytes, as the other sizes */
	uint64_t transaction_size; /* as in struct msg_chunk */
	uint64_t file_size;	   /* 0 unless to_file */
	uint64_t anchor_size;	   /* 0 if to_file, or with a transaction_size */
	uint32_t to_file;
	uint32_t to_server;
	char chunk_id[MSG_ID_SIZE];
	char platform[MSG_TEXT_MAX];
};

/*
 * The outcome of an envelope that is not lost. For a lost envelope the outcome is an enum discard
 * (daemon/msg/discard.h); the values of the two enums do not overlap.
 */
enum ship_result {
	SHIP_NOT_SENT, /* sending was not asked for, or ship has no DSN */
	SHIP_DONE,     /* the server answered with 2xx */
	SHIP_SPOOLED, /* the server did not answer or refuses the DSN; the spool has the envelope */
};

/*
 * MSG_ENVELOPE_WRITTEN: the envelope has been written to its file, or writing failed. Sent for each
 * envelope with to_file as soon as that is known, since sending can take long.
 */
struct msg_envelope_written {
	struct msg_header h;
	uint64_t seq;
	int32_t error; /* errno, or 0 */
	uint32_t reserved;
};

/* MSG_ENVELOPE_DONE: the outcome of an envelope; the last message about this envelope. */
struct msg_envelope_done {
	struct msg_header h;
	uint64_t seq;
	uint32_t result; /* enum ship_result or enum discard */
	uint32_t reserved;
};

/*
 * MSG_LOST: a number of chunks or V1 profiles (daemon/msg/msg_unwind.h) were lost before ship
 * received them. Ship adds them to its reports to the server. Ship counts its own losses itself.
 */
struct msg_lost {
	struct msg_header h;
	uint64_t quantity; /* above 0 */
	uint32_t reason;   /* enum client_report_reason */
	uint32_t kind;	   /* enum envelope_kind */
};

/*
 * MSG_SHIP_FINISH, with a length of time in ns: the daemon ends, or needs this ship no longer. Ship
 * sends envelopes for at most this time, then puts the remaining ones into the spool, or discards
 * them. Ship answers each envelope as before, and exits when the broker closes the socket. A second
 * message can only shorten the time.
 */

/*
 * The largest file of CA certificates (the bundle of a system has 220 kB), and the largest
 * file of a client's certificate chain or key (a few kB).
 */
#define MSG_CA_CERTS_BYTES_MAX	  (4u << 20)
#define MSG_CLIENT_CERT_BYTES_MAX (256u << 10)

/*
 * MSG_CERTIFICATES: the certificates and keys after a reload. When the current request has ended,
 * they replace all that ship had; but if a file is incomplete or cannot be read, ship logs a
 * warning and keeps all that it had. The message carries a descriptor for each bit of files, as
 * MSG_INIT does; the bit of INIT_SPOOL is never set.
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
	uint64_t refused; /* by the server, with an HTTP status */
	uint64_t rate_limited;
	uint64_t overflow;  /* dropped to make room for newer chunks */
	uint64_t expired;   /* removed because they were too old */
	uint64_t set_aside; /* damaged, or not written by the daemon */
};
/* MSG_SPOOL: the state of the spool. Sent when a member has changed. */
struct msg_spool {
	struct msg_header h;
	struct spool_counts counts;
	/* Not 0: an errno. Nothing can be written to the spool now, and chunks wait in memory. */
	uint32_t error;
	uint32_t reserved;
};

/*
 * MSG_LIMITED, with a time by CLOCK_BOOTTIME in ns: until then the server accepts no envelopes
 * of msg_dsn.kind. The time is at most RATE_LIMIT_MAX_S from now (proto/rate_limit.h). Sent when
 * the time has changed.
 */

/*
 * MSG_DENIED: the server refuses the DSN, or, with status 0, no longer refuses it. While the DSN is
 * refused, ship posts only the empty client report that MSG_PROBE describes: at growing intervals,
 * after MSG_CERTIFICATES, and for each MSG_PROBE. Envelopes wait as if the server did not answer.
 * Sent when a member has changed.
 */
struct msg_denied {
	struct msg_header h;
	uint32_t status; /* of HTTP: 401 or 403; 0: the DSN is not refused */
	uint32_t reserved;
	char text[MSG_TEXT_MAX]; /* the reason in the server's answer (proto/answer.h); "": none */
};

/*
 * If the clocks of the server and of this host differ by more than this, the broker warns the user,
 * because chunks have the times of this host.
 */
#define MSG_CLOCK_MAX_S 5

/*
 * MSG_CLOCK: the number of seconds by which the server's clock is ahead of this host's; negative:
 * behind. Computed from the header Date of the server's last answer; 0 before the first answer.
 * Ship sends the message when ahead_s differs by more than a second from the ahead_s of the last
 * MSG_CLOCK, or from 0 if there was none.
 */
struct msg_clock {
	struct msg_header h;
	int64_t ahead_s;
};

/*
 * MSG_PROBE, to a ship that has a DSN: find out whether the server accepts envelopes. When the
 * current request has ended, ship posts an envelope with an empty client report. So the probe uses
 * the same connection, certificates, proxy and sandbox as chunks. If the server has set a rate
 * limit on everything, ship posts nothing and answers with status 429.
 *
 * MSG_PROBED is the answer. The broker sends the next probe only after it.
 */
struct msg_probed {
	struct msg_header h;
	int32_t status;	       /* of HTTP; 0: no answer */
	uint32_t fault;	       /* enum transport_fault, with status 0 */
	int64_t clock_ahead_s; /* as msg_clock.ahead_s */
	/*
	 * With status 0, libcurl's message. Else a text of the server's answer: the header
	 * Location, else the reason of a denial, else the header X-Sentry-Error; "": none.
	 */
	char text[MSG_TEXT_MAX];
};

/*
 * MSG_PING, without an id: ship answers with MSG_PONG, even while it waits for its server. So the
 * broker can tell a ship that waits from a ship that hangs (daemon/broker/deadlines.h).
 */

/* MSG_DSN_SIZE and so on: the size of each type's struct. */
enum {
#define X(type, name, fds) type##_SIZE = sizeof(struct name),
	MSG_SHIP_LIST(X)
#undef X
};

#endif
