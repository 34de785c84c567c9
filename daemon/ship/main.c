/*
 * sentry-profd-ship: the process that talks to the server and writes envelopes
 * to files. It has no privilege; it opens no file to write but in the spool,
 * the broker does; and it never looks into a payload.
 *
 * A file is written when its message comes. What is to be sent waits in a
 * queue, one request at a time, while the loop goes on.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/child.h"
#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "daemon/common/sandbox.h"
#include "daemon/msg/msg_io.h"
#include "daemon/ship/certificates.h"
#include "daemon/ship/outbox.h"
#include "daemon/ship/sending.h"
#include "daemon/ship/spool_part.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "proto/sdk.h"

/* Sentry's SDKs do not wait longer for a server either. */
#define CONNECT_TIMEOUT_MS 10000
#define TOTAL_TIMEOUT_MS   30000

/* The broker is gone, and did not say how long: the SDKs' shutdown_timeout. */
#define SHUTDOWN_NS (2 * NS_PER_SEC)

static struct outbox outbox;
static struct transport *transport;
static struct spool_parts others; /* of the spool */
/* Of a reload: taken when no request is under way. */
static struct certificates renewed;
static bool are_renewed;
static uint64_t last_seq;

static void die(const char *what, int error)
{
	log_error("%s: %s", what, strerror(error));
	exit(EXIT_FAILURE);
}

/* A broker that is gone: its socket's end will say so. */
static void tell(const void *message, size_t size)
{
	int r = ipc_send(MSG_FD, message, size, NULL, 0);

	if (r < 0 && r != -EPIPE)
		die("cannot tell the broker", -r);
}

static void report_spool(void)
{
	struct spooled *s = &outbox.spooled;
	const struct msg_spool m = {
		.h = MSG_HEADER(MSG_SPOOL),
		.counts = s->counts,
	};

	if (!s->counts_changed)
		return;
	s->counts_changed = false;
	tell(&m, sizeof(m));
}

static void report_limit(void)
{
	const struct msg_number m = {
		.h = MSG_HEADER(MSG_LIMITED),
		.n = destination_limit_ns(&outbox.to, outbox.to.kind),
	};

	if (m.n == outbox.limited_told_ns)
		return;
	outbox.limited_told_ns = m.n;
	tell(&m, sizeof(m));
}

/* A date has whole seconds: a change by one is none. */
static void report_clock(void)
{
	const struct msg_clock m = {
		.h = MSG_HEADER(MSG_CLOCK),
		.ahead_s = outbox.to.clock_ahead_s,
	};
	const int64_t change_s = m.ahead_s - outbox.clock_told_s;

	if (change_s >= -1 && change_s <= 1)
		return;
	outbox.clock_told_s = m.ahead_s;
	tell(&m, sizeof(m));
}

/* Tells the broker what became of s, and frees it. */
static void report(struct sending *s, uint32_t result)
{
	const struct msg_envelope_done done = {
		.h = MSG_HEADER(MSG_ENVELOPE_DONE),
		.seq = s->seq,
		.result = result,
	};

	/*
	 * Before: the one counts it, if it is there; the other may be why, and
	 * after its last envelope the broker does not listen any more.
	 */
	report_spool();
	report_limit();
	tell(&done, sizeof(done));
	sending_free(s);
}

static int take_dsn(void *ctx, struct ipc_message *message)
{
	const struct msg_dsn *m = (const void *)message->bytes;
	struct dsn dsn;

	(void)ctx;
	if (message->n_fds != 0 || memchr(m->dsn, '\0', sizeof(m->dsn)) == NULL ||
	    m->compression >= COMPRESSION_N || m->kind >= ENVELOPE_KIND_N)
		return -EPROTO;
	outbox.to.is_spotlight = m->is_spotlight != 0;
	outbox.to.kind = (enum envelope_kind)m->kind;
	outbox.to.compression = (enum compression)m->compression;
	outbox.to.retry_5xx = m->retry_5xx != 0;
	outbox.to.is_silent = m->no_reports != 0;
	switch (m->is_spotlight ? dsn_parse_url(&dsn, m->dsn) : dsn_parse(&dsn, m->dsn)) {
	case DSN_OK:
		outbox_set_dsn(&outbox, &dsn, m->limited_until_ns);
		return 0;
	case DSN_EMPTY:
		outbox_set_dsn(&outbox, NULL, 0);
		return 0;
	case DSN_TOO_LONG:
	case DSN_BAD_SCHEME:
	case DSN_NO_KEY:
	case DSN_BAD_KEY:
	case DSN_BAD_SECRET:
	case DSN_NO_HOST:
	case DSN_BAD_HOST:
	case DSN_BAD_PORT:
	case DSN_BAD_PATH:
	case DSN_NO_PROJECT:
	case DSN_BAD_PROJECT:
		break;
	}
	return -EPROTO;
}

/*
 * Takes the file of the message, and closes it before it says that all is in
 * it. Its payload may be another one than what is sent.
 */
static void write_file(const struct sending *s, struct ipc_message *message)
{
	const struct msg_envelope *m = (const void *)message->bytes;
	struct package package = s->package;
	struct msg_envelope_written written = {
		.h = MSG_HEADER(MSG_ENVELOPE_WRITTEN),
		.seq = s->seq,
	};
	int file = ipc_take_fd(message, 1), r;

	if (m->file_size > 0) {
		package.payload_fd = message->fds[2];
		package.payload_size = m->file_size;
	}
	r = package_write(&package, file);
	/* An error that came late, by NFS for one. */
	if (close(file) < 0 && r == 0)
		r = -errno;
	if (r < 0)
		log_warning("chunk %s could not be written: %s", s->chunk_id, strerror(-r));
	written.error = -r;
	tell(&written, sizeof(written));
}

static int take_envelope(void *ctx, struct ipc_message *fds)
{
	const struct msg_envelope *m = (const void *)fds->bytes;
	struct sending *s;
	int r;

	(void)ctx;
	if (m->seq <= last_seq)
		return -EPROTO;
	r = sending_new(fds, &s);
	if (r < 0)
		return r;
	last_seq = m->seq;
	if (m->to_file)
		write_file(s, fds);
	if (m->to_server)
		outbox_add(&outbox, s);
	else
		report(s, SHIP_NOTHING);
	return 0;
}

static int take_lost(void *ctx, struct ipc_message *message)
{
	const struct msg_lost *m = (const void *)message->bytes;

	(void)ctx;
	if (m->reason >= CLIENT_REPORT_REASON_N || m->quantity == 0 || m->kind >= ENVELOPE_KIND_N)
		return -EPROTO;
	outbox_lost(&outbox, (enum envelope_kind)m->kind, (enum client_report_reason)m->reason,
		    m->quantity);
	return 0;
}

static void take_files(struct ipc_message *m, uint32_t files, int ret_fds[INIT_FILE_N])
{
	size_t n = 0;

	for (size_t i = 0; i < INIT_FILE_N; i++)
		ret_fds[i] = files & 1u << i ? ipc_take_fd(m, n++) : -1;
}

static void close_files(int fds[INIT_FILE_N])
{
	for (size_t i = INIT_CA_CERTS; i < INIT_FILE_N; i++)
		close_fd(&fds[i]);
}

/* Files that are being renewed may not be whole: the next reload has them. */
static int take_certificates(void *ctx, struct ipc_message *message)
{
	const struct msg_certificates *m = (const void *)message->bytes;
	const char *problem;
	int fds[INIT_FILE_N], r;

	(void)ctx;
	if (m->files & 1u << INIT_SPOOL || m->files >= 1u << INIT_FILE_N ||
	    message->n_fds != (size_t)__builtin_popcount(m->files))
		return -EPROTO;
	take_files(message, m->files, fds);
	if (are_renewed)
		certificates_fini(&renewed);
	r = certificates_read(&renewed, fds);
	close_files(fds);
	problem = r < 0 ? "a file" : certificates_problem(&renewed);
	are_renewed = problem == NULL;
	if (problem == NULL)
		return 0;
	certificates_fini(&renewed);
	log_warning("%s cannot be used: certificates and keys stay as they "
		    "were (reload again)",
		    problem);
	return 0;
}

/* The server that did not answer may do so now. */
static void renew_certificates(void)
{
	struct transport_options options = {0};

	if (!are_renewed || transport_busy(transport))
		return;
	certificates_use(&renewed, &options);
	if (transport_set_certificates(transport, &options) < 0)
		die("cannot take the new certificates", ENOMEM);
	certificates_fini(&renewed);
	are_renewed = false;
	backoff_succeeded(&outbox.to.backoff);
	spooled_hurry(&outbox.spooled);
	log_debug("certificates and keys are read again");
}

static int take_finish(void *ctx, struct ipc_message *message)
{
	const struct msg_number *m = (const void *)message->bytes;

	(void)ctx;
	outbox_finish(&outbox, m->n);
	return 0;
}

/* The server's answer to a probe, or that there is none. */
static void report_probe(const struct transport_answer *a)
{
	const char *text = a->status == 0 ? a->error : a->sentry_error;
	struct msg_probed m = {
		.h = MSG_HEADER(MSG_PROBED),
		.status = a->status,
		.fault = (uint32_t)a->fault,
		.clock_ahead_s = outbox.to.clock_ahead_s,
	};

	(void)snprintf(m.text, sizeof(m.text), "%s", text != NULL ? text : "");
	tell(&m, sizeof(m));
}

static int take_probe(void *ctx, struct ipc_message *message)
{
	(void)ctx;
	(void)message;
	if (!outbox.to.has_dsn)
		return -EPROTO;
	outbox_probe(&outbox, report_probe);
	return 0;
}

/* Returns false at the end of the broker's socket. */
static bool on_broker(void)
{
	static const struct msg_rule rules[] = {
		{MSG_DSN, take_dsn},	 {MSG_ENVELOPE, take_envelope},
		{MSG_LOST, take_lost},	 {MSG_SHIP_FINISH, take_finish},
		{MSG_PROBE, take_probe}, {MSG_CERTIFICATES, take_certificates},
	};
	struct ipc_message m;
	int r = ipc_recv(MSG_FD, &m);

	if (r == 0)
		return false;
	if (r > 0)
		r = msg_handle(rules, array_size(rules), NULL, &m);
	ipc_close_fds(&m);
	if (r < 0 && r != -EPIPE)
		die("a message of the broker", -r);
	return true;
}

static void open_transport(const int fds[INIT_FILE_N])
{
	struct transport_options options = {
		.client = SDK_NAME "/" SDK_VERSION,
		.connect_timeout_ms = CONNECT_TIMEOUT_MS,
		.total_timeout_ms = TOTAL_TIMEOUT_MS,
	};
	struct certificates certificates;
	int r;

	r = certificates_read(&certificates, fds);
	certificates_use(&certificates, &options);
	if (r == 0)
		r = transport_new(&transport, &options);
	if (r < 0)
		die("cannot start", -r);
	certificates_fini(&certificates);
}

/* Without one, chunks wait in memory. */
static void open_spool(const struct msg_init *init, int dir_fd)
{
	const struct spool_limits limits = {
		.bytes = init->spool_bytes,
		.count = init->spool_count,
		.age_ms = init->spool_age_s * UINT64_C(1000),
	};
	int r = dir_fd < 0 ? 0 : spooled_open(&outbox.spooled, init->spool_dsn, &limits, dir_fd);

	if (r < 0)
		log_error("the spool cannot be read: %s", strerror(-r));
}

static void set_up(const struct msg_init *init, int fds[INIT_FILE_N])
{
	/* ^C and a service's stop are the broker's: it says when to end. */
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	int r;

	for (size_t i = 0; i < array_size(signals); i++)
		(void)signal(signals[i], SIG_IGN);
	/* Whoever waits for a server needs no priority. */
	(void)!nice((int)init->nice_steps);
	r = privileges_drop(init->uid, init->gid, 0, false);
	if (r < 0)
		die("cannot give up privileges", -r);
	open_transport(fds);
	close_files(fds);
	outbox_init(&outbox, transport, report);
	fds[INIT_SPOOL] = spool_part_open(fds[INIT_SPOOL], init, &others);
	r = sandbox_enter(SANDBOX_SHIP, init->seccomp_kill, fds[INIT_SPOOL]);
	if (r < 0)
		die("cannot enter the sandbox", -r);
	open_spool(init, fds[INIT_SPOOL]);
}

/* Nobody waits for answers any more; what is left may still be sent. */
static void finish_alone(void)
{
	bool ignored;

	outbox_finish(&outbox, SHUTDOWN_NS);
	outbox_end(&outbox, SHUTDOWN_NS);
	for (;;) {
		outbox_step(&outbox);
		if (outbox_is_empty(&outbox) ||
		    transport_wait(transport, -1, outbox_wait_ms(&outbox), &ignored) < 0)
			return;
	}
}

int main(int argc, char **argv)
{
	struct ipc_message message;
	const struct msg_init *init = child_start(argc, argv, "sentry-profd-ship", &message);
	int fds[INIT_FILE_N];
	bool readable;

	take_files(&message, init->files, fds);
	set_up(init, fds);
	ipc_close_fds(&message);
	child_is_ready();
	for (;;) {
		report_spool();
		report_limit();
		report_clock();
		if (transport_wait(transport, MSG_FD, outbox_wait_ms(&outbox), &readable) < 0)
			die("waiting", EIO);
		if (readable && !on_broker())
			break;
		renew_certificates();
		outbox_step(&outbox);
		spool_parts_check(&others);
	}
	finish_alone();
	outbox_fini(&outbox);
	return EXIT_SUCCESS;
}
