#include "daemon/ctl/send.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/common/random.h"
#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "daemon/config/config_files.h"
#include "daemon/config/config_resolve.h"
#include "daemon/config/config_value.h"
#include "daemon/ctl/common/inputs.h"
#include "daemon/ctl/common/helper.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_io.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/clock.h"
#include "lib/base/digits.h"
#include "lib/base/sealed.h"
#include "proto/chunk_v2.h"
#include "proto/dsn.h"
#include "proto/envelope.h"
#include "proto/import/reader.h"

enum {
	DSN = OPTION_LONG,
	CA_CERTS,
	TIMEOUT,
};

/* Long enough for a server that is being restarted. */
#define TIMEOUT_S     60u
#define TIMEOUT_MAX_S 86400u

/* The shortest pause after a rate limit, so that a limit of 0 s makes no busy loop. */
#define PAUSE_MIN_NS NS_PER_SEC

const char send_help[] = "\n"
			 "send IN... [--dsn DSN]  send profiles in files to the server of the DSN\n"
			 "                        (default: $SENTRY_DSN); the files stay\n"
			 "\n"
			 "  --timeout S           give up if the server does not answer for this\n"
			 "                        time (default: 60)\n"
			 "  --ca-certs FILE       trust these certificate authorities, too\n";

struct send {
	struct config config;
	struct helper ship;
	uint64_t seq; /* of the last envelope */
	uint64_t timeout_ns;
	uint64_t limited_until_ns; /* rate limit of the server, clock_boot_ns */
	bool is_denied;		   /* the server refuses the DSN */
	bool has_given_up;	   /* ship has exited, or the server does not answer or is_denied */
	size_t n_accepted, n_refused, n_unsent, n_unreadable;
};

static int begin(struct send *s)
{
	const char *const paths[INIT_FILE_N] = {
		[INIT_CA_CERTS] = s->config.ca_certs,
	};
	struct msg_dsn dsn = {
		.h = MSG_HEADER(MSG_DSN),
		.retry_5xx = true,
		/* No loss to report to the server: the files stay. */
		.no_reports = true,
		.compression = (uint32_t)s->config.compression,
		.kind = ENVELOPE_CHUNK,
	};
	int fd = -1, r = 0;

	if (paths[INIT_CA_CERTS][0] != '\0')
		r = config_files_open(paths[INIT_CA_CERTS], &fd);
	/* An unreadable file of $SSL_CERT_FILE is not fatal; config_files_check has warned. */
	if (r < 0 && s->config.ca_certs_by_variable)
		r = 0;
	if (r < 0) {
		log_error("cannot read the certificates in %s: %s", paths[INIT_CA_CERTS],
			  strerror(-r));
		return r;
	}
	r = helper_start_ship(&s->ship, &fd, fd >= 0 ? 1 : 0, fd >= 0 ? 1u << INIT_CA_CERTS : 0);
	close_fd(&fd);
	memcpy(dsn.dsn, s->config.dsn, sizeof(dsn.dsn));
	if (r == 0)
		r = ipc_send(s->ship.fd, &dsn, sizeof(dsn), NULL, 0);
	explicit_bzero(&dsn, sizeof(dsn));
	if (r < 0)
		log_error("sentry-profd-ship cannot be started: %s; nothing is sent", strerror(-r));
	return r;
}

static int hand_over(struct send *s, const struct msg_envelope *envelope, int payload)
{
	struct msg_envelope m = *envelope;

	m.seq = ++s->seq;
	return ipc_send(s->ship.fd, &m, sizeof(m), &payload, 1);
}

/* Tells ship to stop retrying: it reports the result of each envelope at once then. */
static int stop_retries(const struct send *s)
{
	return msg_send_number(s->ship.fd, MSG_SHIP_FINISH, 0);
}

/* Returns 1 with the result of the envelope, 0 after another message, or -errno. */
static int take_message(struct send *s, uint32_t *ret)
{
	const struct msg_envelope_done *done;
	const struct msg_denied *denial;
	const struct msg_number *limit;
	struct ipc_message m;
	int r = ipc_recv(s->ship.fd, &m);

	if (r <= 0)
		return r == 0 ? -EPIPE : r;
	ipc_close_fds(&m);
	switch (msg_type_of(&m)) {
	case MSG_LIMITED:
		limit = msg_as(&m, MSG_LIMITED);
		if (limit == NULL)
			return -EPROTO;
		s->limited_until_ns = limit->n;
		return 0;
	case MSG_DENIED:
		denial = msg_as(&m, MSG_DENIED);
		if (denial == NULL || memchr(denial->text, '\0', sizeof(denial->text)) == NULL)
			return -EPROTO;
		log_error("the server refuses the DSN with status %u%s%s: no further chunk is sent "
			  "(check that the project's settings have this DSN and that its key is "
			  "enabled)",
			  denial->status, denial->text[0] != '\0' ? ", " : "", denial->text);
		s->is_denied = true;
		return stop_retries(s);
	case MSG_ENVELOPE_DONE:
		done = msg_as(&m, MSG_ENVELOPE_DONE);
		if (done == NULL || done->seq != s->seq)
			return -EPROTO;
		*ret = done->result;
		return 1;
	default:
		return 0;
	}
}

/* Waits for the result of the envelope that ship has. */
static int wait_for_result(struct send *s, uint32_t *ret)
{
	const uint64_t until_ns = clock_boot_ns() + s->timeout_ns;
	bool has_stopped = false; /* stop_retries() was called */
	int r = 0;

	while (r == 0) {
		struct pollfd p = {.fd = s->ship.fd, .events = POLLIN};
		const uint64_t now_ns = clock_boot_ns();
		const uint64_t left_ns = now_ns < until_ns ? until_ns - now_ns : 0;

		r = poll(&p, 1, has_stopped ? -1 : (int)(left_ns / NS_PER_MS) + 1);
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r > 0) {
			r = take_message(s, ret);
		} else if (r == 0 && !has_stopped && clock_boot_ns() >= until_ns) {
			has_stopped = true;
			r = stop_retries(s);
		} else {
			r = 0;
		}
	}
	return r < 0 ? r : 0;
}

/* Sleeps until the rate limit of the server is over. */
static void wait_for_server(const struct send *s, bool was_limited)
{
	const uint64_t now_ns = clock_boot_ns();
	uint64_t until_ns = s->limited_until_ns;
	struct timespec t;

	if (was_limited)
		until_ns = max_u64(until_ns, now_ns + PAUSE_MIN_NS);
	if (until_ns <= now_ns)
		return;
	log_warning("the server takes no profiles for %.0f s: waiting",
		    (double)(until_ns - now_ns) / (double)NS_PER_SEC);
	t = (struct timespec){.tv_sec = (time_t)(until_ns / NS_PER_SEC),
			      .tv_nsec = (long)(until_ns % NS_PER_SEC)};
	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* Sends an envelope, again after each rate limit, until the server accepts or refuses it. */
static int deliver(struct send *s, const struct msg_envelope *m, int payload, uint32_t *ret)
{
	int r;

	*ret = SHIP_NOT_SENT;
	do {
		wait_for_server(s, *ret == DISCARD_RATE_LIMITED);
		r = hand_over(s, m, payload);
		if (r == 0)
			r = wait_for_result(s, ret);
	} while (r == 0 && *ret == DISCARD_RATE_LIMITED);
	return r;
}

static void count(struct send *s, const char *path, const char *id, uint32_t result)
{
	if (result == SHIP_DONE) {
		s->n_accepted++;
		return;
	}
	if (result == DISCARD_SEND_ERROR) {
		s->n_refused++;
		log_error("%s: the server has refused chunk %s (see the status above)", path, id);
		s->has_given_up = s->is_denied;
		return;
	}
	s->has_given_up = result == DISCARD_NETWORK_ERROR;
	if (s->has_given_up)
		log_error("%s: not sent: the server has not answered within "
			  "%u s",
			  path, (unsigned int)(s->timeout_ns / NS_PER_SEC));
	else
		log_error("%s: chunk %s not sent: %s", path, id,
			  result == DISCARD_MEMORY ? "sentry-profd-ship had no memory for it"
			  : result == DISCARD_RATE_LIMITED
				  ? "the server takes no profiles for now (a rate limit, or the "
				    "quota is used up): send it later"
				  : discard_name(result));
	s->n_unsent++;
}

/* Fills in the header for ship. Returns NULL, or why the chunk cannot be sent. */
static const char *fill_header(const struct import_chunk *c, size_t size, struct msg_envelope *ret)
{
	*ret = (struct msg_envelope){
		.h = MSG_HEADER(MSG_ENVELOPE),
		.size = size,
		.to_server = true,
	};
	if (size > CHUNK_V2_SIZE_MAX)
		return "more than 50 MB: the server does not accept such a chunk";
	if (strlen(c->chunk_id) != MSG_ID_SIZE - 1)
		return "its chunk_id is not 32 hex digits";
	memcpy(ret->chunk_id, c->chunk_id, MSG_ID_SIZE);
	if (!random_id_is_valid(ret->chunk_id))
		return "its chunk_id is not 32 hex digits in lower case";
	if (c->platform == NULL || c->platform[0] == '\0' ||
	    strlen(c->platform) >= sizeof(ret->platform))
		return "its platform is missing or too long";
	memcpy(ret->platform, c->platform, strlen(c->platform) + 1);
	return NULL;
}

/*
 * Copies the payload, and sets its size in *m. A run by hand that could not make its page has left
 * files with the command lines of processes: these are not sent.
 */
static int copy_payload(const struct import_reader *text, const struct import_chunk *c,
			struct msg_envelope *m, int *ret)
{
	char *without;
	int r;

	if (json_object_del(c->payload, PROFILE_COMMAND_LINE) < 0)
		return sealed_copy("chunk", text->payload, text->payload_size, ret);
	without = json_dumps(c->payload, JSON_COMPACT);
	if (without == NULL)
		return -ENOMEM;
	m->size = strlen(without);
	r = sealed_copy("chunk", without, m->size, ret);
	free(without);
	return r;
}

static int send_chunk(struct send *s, const char *path, const struct import_reader *text,
		      const struct import_chunk *c)
{
	uint32_t result = SHIP_NOT_SENT;
	struct msg_envelope m;
	const char *problem = fill_header(c, text->payload_size, &m);
	int payload = -1, r;

	if (problem != NULL) {
		log_error("%s: a chunk is not sent: %s", path, problem);
		s->n_unreadable++;
		return 0;
	}
	if (s->has_given_up) {
		s->n_unsent++;
		return 0;
	}
	r = copy_payload(text, c, &m, &payload);
	if (r == 0)
		r = deliver(s, &m, payload, &result);
	close_fd(&payload);
	if (r == 0) {
		count(s, path, m.chunk_id, result);
		return 0;
	}
	s->has_given_up = true;
	s->n_unsent++;
	log_error("%s: not sent: %s%s", path,
		  r == -EPIPE ? "sentry-profd-ship has exited"
			      : "cannot hand it to sentry-profd-ship: ",
		  r == -EPIPE ? "" : strerror(-r));
	return r;
}

static int send_file(void *ctx, const char *path, const char *bytes, size_t size)
{
	struct import_fault fault = {""};
	struct import_chunk chunk;
	struct import_reader text;
	struct send *s = ctx;
	size_t n = 0;
	int r, error = 0;

	import_reader_init(&text, bytes, size);
	while ((r = import_reader_next(&text, &chunk, &fault)) == 1) {
		n++;
		r = send_chunk(s, path, &text, &chunk);
		import_chunk_fini(&chunk);
		error = error < 0 ? error : r;
	}
	if (r == 0 && n == 0) {
		(void)import_fault_set(&fault, "has no profile chunk");
		r = -EBADMSG;
	}
	if (r < 0) {
		if (r == -EBADMSG)
			log_error("%s: %s", path, fault.text);
		else
			log_error("reading %s failed: %s", path, strerror(-r));
		s->n_unreadable++;
	}
	return r < 0 ? r : error;
}

static void summarise(const struct send *s)
{
	printf("%zu chunk%s sent", s->n_accepted, s->n_accepted == 1 ? "" : "s");
	if (s->n_refused > 0)
		printf(", %zu refused by the server", s->n_refused);
	if (s->n_unsent > 0)
		printf(", %zu not sent", s->n_unsent);
	if (s->n_unreadable > 0)
		printf(", %zu invalid", s->n_unreadable);
	printf("\n");
}

static bool set_key(struct send *s, const char *key, const char *option, const char *value)
{
	char problem[CONFIG_PROBLEM_MAX];

	if (config_set(&s->config, key, option, value, problem) == 0)
		return true;
	log_error("send: %s: %s", option, problem);
	return false;
}

static bool set_timeout(struct send *s, const char *value)
{
	uint64_t seconds;

	if (digits_number(value, 1, TIMEOUT_MAX_S, &seconds)) {
		s->timeout_ns = seconds * NS_PER_SEC;
		return true;
	}
	log_error("send: --timeout %s: not a number of seconds from 1 to %u", value, TIMEOUT_MAX_S);
	return false;
}

static bool set_option(struct send *s, int option, const char *value)
{
	switch (option) {
	case DSN:
		return set_key(s, "dsn", "--dsn", value);
	case CA_CERTS:
		return set_key(s, "ca_certs", "--ca-certs", value);
	default: /* TIMEOUT */
		return set_timeout(s, value);
	}
}

static bool resolve(struct send *s)
{
	struct config_faults faults = {.n = 0};
	bool is_good = config_resolve(&s->config, getenv, &faults) == 0;

	if (is_good)
		config_files_check(&s->config, CONFIG_AT_START, &faults);
	is_good = is_good && faults.n_errors == 0;
	for (size_t i = 0; i < faults.n; i++) {
		if (faults.v[i].is_warning)
			log_warning("%s", faults.v[i].text);
		else
			log_error("%s", faults.v[i].text);
	}
	config_faults_fini(&faults);
	if (is_good && s->config.dsn[0] == '\0')
		log_error("send: no DSN: add --dsn DSN, or set SENTRY_DSN in the "
			  "environment");
	return is_good && s->config.dsn[0] != '\0';
}

static bool parse(struct send *s, int argc, char **argv)
{
	static const struct option options[] = {
		{"dsn", required_argument, NULL, DSN},
		{"ca-certs", required_argument, NULL, CA_CERTS},
		{"timeout", required_argument, NULL, TIMEOUT},
		{0},
	};
	int option;

	s->timeout_ns = TIMEOUT_S * NS_PER_SEC;
	while ((option = option_next(argv[0], argc, argv, ":", options, NULL)) != -1)
		if (option == '?' || !set_option(s, option, optarg))
			return false;
	if (optind < argc)
		return resolve(s);
	log_error("send: no input: name files or a directory that "
		  "sentry-profd has written");
	return false;
}

int send_run(int argc, char **argv)
{
	struct send s = {.ship = {.fd = -1}};
	int r = -EINVAL, status = EXIT_USAGE;

	/* The DSN has a key: keep it out of core files. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	config_init(&s.config);
	if (parse(&s, argc, argv)) {
		r = begin(&s);
		if (r == 0) {
			r = inputs_each_file(argv + optind, (size_t)(argc - optind), true,
					     send_file, &s);
			if (r == 0 && s.n_accepted + s.n_refused + s.n_unsent == 0)
				log_error("no profile chunk in these files");
			summarise(&s);
		}
		status = r == 0 && s.n_accepted > 0 && s.n_refused == 0 && s.n_unsent == 0 &&
					 s.n_unreadable == 0
				 ? EXIT_SUCCESS
				 : EXIT_FAILURE;
	}
	helper_kill(&s.ship);
	config_fini(&s.config);
	return status;
}
