/*
 * sentry-profd-ship: the process that sends envelopes to the server and writes them to files. The
 * broker starts one for each server (DSN).
 *
 * main.c has the loop and the messages of the broker. An envelope's file is written when its
 * message arrives; an envelope for the server goes to the outbox (outbox.h).
 *
 * ship has no privilege, and never reads a payload. The only files that it creates are in the
 * spool; output files are opened by the broker and arrive as descriptors.
 */
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
#include "daemon/ship/queue.h"
#include "daemon/ship/spool_dirs.h"
#include "lib/base/clock.h"
#include "proto/sdk.h"

/* The timeouts of Sentry's SDKs. */
#define CONNECT_TIMEOUT_MS 10000
#define TOTAL_TIMEOUT_MS   30000

/* Time to finish after the broker has died: the shutdown_timeout of Sentry's SDKs. */
#define SHUTDOWN_NS (2 * NS_PER_SEC)

static struct outbox outbox;
static struct transport *transport;
static struct spool_dirs spool_dirs;
/* Certificates of a reload, used as soon as no request is in flight. */
static struct certificates renewed;
static bool has_renewed;
static uint64_t last_seq;
/* The last values that were reported to the broker. */
static uint64_t reported_limit_ns;
static int64_t reported_clock_s;
static struct msg_denied reported_denial = {.h = MSG_HEADER(MSG_DENIED)};

static void die(const char *what, int error)
{
	log_error("%s: %s", what, strerror(error));
	exit(EXIT_FAILURE);
}

/* Sends a message to the broker. -EPIPE is no error: the loop ends when it reads the socket. */
static void send_message(const void *message, size_t size)
{
	int r = ipc_send(MSG_FD, message, size, NULL, 0);

	if (r < 0 && r != -EPIPE)
		die("cannot send to the parent process", -r);
}

static void report_spool(void)
{
	struct spooler *s = &outbox.spooler;
	const struct msg_spool m = {
		.h = MSG_HEADER(MSG_SPOOL),
		.counts = s->counts,
		.error = (uint32_t)s->disk_error,
	};

	if (!s->changed)
		return;
	s->changed = false;
	send_message(&m, sizeof(m));
}

static void report_limit(void)
{
	const struct msg_number m = {
		.h = MSG_HEADER(MSG_LIMITED),
		.n = destination_limit_ns(&outbox.destination, outbox.destination.kind),
	};

	if (m.n == reported_limit_ns)
		return;
	reported_limit_ns = m.n;
	send_message(&m, sizeof(m));
}

static void report_denial(void)
{
	const struct destination *d = &outbox.destination;
	struct msg_denied m = {
		.h = MSG_HEADER(MSG_DENIED),
		.status = (uint32_t)d->denial,
	};

	if (d->denial != 0)
		(void)snprintf(m.text, sizeof(m.text), "%s", d->denial_text);
	if (memcmp(&m, &reported_denial, sizeof(m)) == 0)
		return;
	reported_denial = m;
	send_message(&m, sizeof(m));
}

/* A change by one second is rounding: the server's date has whole seconds. */
static void report_clock(void)
{
	const struct msg_clock m = {
		.h = MSG_HEADER(MSG_CLOCK),
		.ahead_s = outbox.destination.clock_ahead_s,
	};
	const int64_t change_s = m.ahead_s - reported_clock_s;

	if (change_s >= -1 && change_s <= 1)
		return;
	reported_clock_s = m.ahead_s;
	send_message(&m, sizeof(m));
}

/* Tells the broker what became of an envelope, and frees the item. */
static void report(struct queue_item *item, uint32_t result)
{
	const struct msg_envelope_done done = {
		.h = MSG_HEADER(MSG_ENVELOPE_DONE),
		.seq = item->seq,
		.result = result,
	};

	/*
	 * First: the spool's counts include this envelope, a limit or a denial may be its reason,
	 * and the broker stops reading after its last envelope.
	 */
	report_spool();
	report_limit();
	report_denial();
	send_message(&done, sizeof(done));
	queue_item_free(item);
}

static int take_dsn(void *ctx, struct ipc_message *message)
{
	const struct msg_dsn *m = (const void *)message->bytes;
	struct dsn dsn;

	(void)ctx;
	if (message->n_fds != 0 || memchr(m->dsn, '\0', sizeof(m->dsn)) == NULL ||
	    m->compression >= COMPRESSION_N || m->kind >= ENVELOPE_KIND_N || m->denial > INT32_MAX)
		return -EPROTO;
	outbox.destination.is_spotlight = m->is_spotlight != 0;
	outbox.destination.kind = (enum envelope_kind)m->kind;
	outbox.destination.compression = (enum compression)m->compression;
	outbox.destination.retry_5xx = m->retry_5xx != 0;
	outbox.destination.no_reports = m->no_reports != 0;
	switch (m->is_spotlight ? dsn_parse_url(&dsn, m->dsn) : dsn_parse(&dsn, m->dsn)) {
	case DSN_OK:
		outbox_set_dsn(&outbox, &dsn, m->limited_until_ns, (int)m->denial);
		reported_limit_ns = m->limited_until_ns;
		reported_denial.status = m->denial;
		return 0;
	case DSN_EMPTY:
		outbox_set_dsn(&outbox, NULL, 0, 0);
		reported_limit_ns = 0;
		reported_denial.status = 0;
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
 * Writes the envelope to the output file of the message and closes the file, whose payload may
 * differ from the one for the server. Reports the result to the broker.
 */
static void write_file(const struct queue_item *item, struct ipc_message *message)
{
	const struct msg_envelope *m = (const void *)message->bytes;
	struct package package = item->package;
	struct msg_envelope_written written = {
		.h = MSG_HEADER(MSG_ENVELOPE_WRITTEN),
		.seq = item->seq,
	};
	int file = ipc_take_fd(message, 1), r;

	if (m->file_size > 0) {
		package.payload_fd = message->fds[2];
		package.payload_size = m->file_size;
	}
	r = package_write(&package, file);
	/* NFS, for one, reports write errors at close(2). */
	if (close(file) < 0 && r == 0)
		r = -errno;
	if (r < 0)
		log_warning("cannot write chunk %s to its output file: %s; the output lacks the "
			    "chunk",
			    item->chunk_id, strerror(-r));
	written.error = -r;
	send_message(&written, sizeof(written));
}

static int take_envelope(void *ctx, struct ipc_message *message)
{
	const struct msg_envelope *m = (const void *)message->bytes;
	struct queue_item *item;
	int r;

	(void)ctx;
	if (m->seq <= last_seq)
		return -EPROTO;
	r = queue_item_new(message, &item);
	if (r < 0)
		return r;
	last_seq = m->seq;
	if (m->to_file)
		write_file(item, message);
	if (m->to_server)
		outbox_add(&outbox, item);
	else
		report(item, SHIP_NOT_SENT);
	return 0;
}

static int take_lost(void *ctx, struct ipc_message *message)
{
	const struct msg_lost *m = (const void *)message->bytes;

	(void)ctx;
	if (m->reason >= CLIENT_REPORT_REASON_N || m->quantity == 0 || m->kind >= ENVELOPE_KIND_N)
		return -EPROTO;
	outbox_count_lost(&outbox, (enum envelope_kind)m->kind,
			  (enum client_report_reason)m->reason, m->quantity);
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

/* A file may be incomplete because it is being renewed: then the old ones stay in use. */
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
	if (has_renewed)
		certificates_fini(&renewed);
	r = certificates_read(&renewed, fds);
	close_files(fds);
	problem = r < 0 ? "a certificate file" : certificates_problem(&renewed);
	has_renewed = problem == NULL;
	if (problem == NULL)
		return 0;
	certificates_fini(&renewed);
	log_warning("%s cannot be used: incomplete or unreadable; the old certificates and keys "
		    "stay in use (repair the file, then reload)",
		    problem);
	return 0;
}

/* Applies certificates of a reload, and tries at once a server that was silent or refused. */
static void renew_certificates(void)
{
	struct transport_options options = {0};

	if (!has_renewed || transport_busy(transport))
		return;
	certificates_set_options(&renewed, &options);
	if (transport_set_certificates(transport, &options) < 0)
		die("cannot apply the new certificates", ENOMEM);
	certificates_fini(&renewed);
	has_renewed = false;
	retry_succeeded(&outbox.destination.retry);
	spooler_server_answers(&outbox.spooler);
	log_debug("certificates and keys were read again");
}

static int take_finish(void *ctx, struct ipc_message *message)
{
	const struct msg_number *m = (const void *)message->bytes;

	(void)ctx;
	outbox_set_deadline(&outbox, m->n);
	return 0;
}

/* Reports the answer to a probe, or its absence. */
static void report_probe(const struct transport_answer *a)
{
	const struct destination *d = &outbox.destination;
	const char *text = a->status == 0	 ? a->error
			   : a->location != NULL ? a->location
			   : d->denial != 0	 ? d->denial_text
						 : a->sentry_error;
	struct msg_probed m = {
		.h = MSG_HEADER(MSG_PROBED),
		.status = a->status,
		.fault = (uint32_t)a->fault,
		.clock_ahead_s = d->clock_ahead_s,
	};

	(void)snprintf(m.text, sizeof(m.text), "%s", text != NULL ? text : "");
	send_message(&m, sizeof(m));
}

static int take_probe(void *ctx, struct ipc_message *message)
{
	(void)ctx;
	(void)message;
	if (!outbox.destination.has_dsn)
		return -EPROTO;
	outbox_probe(&outbox, report_probe);
	return 0;
}

static int take_ping(void *ctx, struct ipc_message *message)
{
	const struct msg_id m = {.h = MSG_HEADER(MSG_PONG)};

	(void)ctx;
	(void)message;
	send_message(&m, sizeof(m));
	return 0;
}

/* Handles a message of the broker. Returns false if the broker has closed the socket. */
static bool handle_message(void)
{
	static const struct msg_rule rules[] = {
		{MSG_DSN, take_dsn},	 {MSG_ENVELOPE, take_envelope},
		{MSG_LOST, take_lost},	 {MSG_SHIP_FINISH, take_finish},
		{MSG_PROBE, take_probe}, {MSG_CERTIFICATES, take_certificates},
		{MSG_PING, take_ping},
	};
	struct ipc_message m;
	int r = ipc_recv(MSG_FD, &m);

	if (r == 0)
		return false;
	if (r > 0)
		r = msg_handle(rules, array_size(rules), NULL, &m);
	ipc_close_fds(&m);
	if (r < 0 && r != -EPIPE)
		die("cannot handle a message from the parent process", -r);
	return true;
}

static void open_transport(const int fds[INIT_FILE_N])
{
	struct transport_options options = {
		.client = SDK_NAME "/" SDK_VERSION,
		.connect_timeout_ms = CONNECT_TIMEOUT_MS,
		.total_timeout_ms = TOTAL_TIMEOUT_MS,
		.cpu_ns = clock_cpu_ns,
	};
	struct certificates certificates;
	int r;

	r = certificates_read(&certificates, fds);
	certificates_set_options(&certificates, &options);
	if (r == 0)
		r = transport_new(&transport, &options);
	if (r < 0)
		die("cannot start", -r);
	certificates_fini(&certificates);
}

/* dir_fd -1: there is no spool, and envelopes wait in memory. */
static void open_spool(const struct msg_init *init, int dir_fd)
{
	const struct spool_limits limits = {
		.bytes = init->spool_bytes,
		.count = init->spool_count,
		.age_ms = init->spool_age_s * UINT64_C(1000),
	};
	int r = dir_fd < 0 ? 0 : spooler_open(&outbox.spooler, init->spool_dsn, &limits, dir_fd);

	if (r < 0)
		log_error("the spool cannot be read: %s; chunks wait in memory, and are lost if "
			  "they cannot be sent before the end (has the directory's owner or mode "
			  "changed?)",
			  strerror(-r));
}

static void set_up(const struct msg_init *init, int fds[INIT_FILE_N])
{
	/* The broker handles signals and says when to end. */
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	int r;

	for (size_t i = 0; i < array_size(signals); i++)
		(void)signal(signals[i], SIG_IGN);
	/* ship mostly waits for the server. */
	(void)!nice((int)init->nice_steps);
	r = privileges_drop(init->uid, init->gid, 0, false);
	if (r < 0)
		die("cannot give up privileges", -r);
	open_transport(fds);
	close_files(fds);
	outbox_init(&outbox, transport, report);
	fds[INIT_SPOOL] = spool_dirs_open(fds[INIT_SPOOL], init, &spool_dirs);
	r = sandbox_enter(SANDBOX_SHIP, init->seccomp_kill, fds[INIT_SPOOL]);
	if (r < 0)
		die("cannot enter the sandbox", -r);
	open_spool(init, fds[INIT_SPOOL]);
}

/* The broker is gone: sends what is left, for SHUTDOWN_NS at most. */
static void finish_alone(void)
{
	bool ignored;

	outbox_set_deadline(&outbox, SHUTDOWN_NS);
	outbox_close(&outbox, SHUTDOWN_NS);
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
	const struct msg_init *init = child_start(argc, argv, "sentry-profd-ship", NULL, &message);
	int fds[INIT_FILE_N];
	bool readable;

	take_files(&message, init->files, fds);
	set_up(init, fds);
	ipc_close_fds(&message);
	child_send_ready();
	for (;;) {
		report_spool();
		report_limit();
		report_denial();
		report_clock();
		if (transport_wait(transport, MSG_FD, outbox_wait_ms(&outbox), &readable) < 0)
			die("cannot wait for events", EIO);
		if (readable && !handle_message())
			break;
		renew_certificates();
		outbox_step(&outbox);
		spool_dirs_check(&spool_dirs);
	}
	finish_alone();
	outbox_fini(&outbox);
	return EXIT_SUCCESS;
}
