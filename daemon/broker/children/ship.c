#include "daemon/broker/children/ship.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/state/counts.h"
#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "daemon/common/spool_dir.h"
#include "daemon/config/accounts.h"
#include "daemon/config/config.h"
#include "daemon/config/config_files.h"

/*
 * A spool that the configuration names must exist; without the default one the daemon runs all
 * the same.
 */
static int open_spool(struct children *c)
{
	const char *given = c->state->options.config.spool, *path = given;
	uint32_t uid = PRIVILEGES_KEEP_ID, gid = PRIVILEGES_KEEP_ID;
	char what[SPOOL_DIR_FAULT_MAX];
	uint32_t former;
	int r;

	if (given[0] == '\0')
		path = geteuid() == 0 ? SPOOL_DIR_DEFAULT : "none";
	if (!c->has_dsn || strcmp(path, "none") == 0 || c->state->options.check_servers)
		return 0;
	if (geteuid() == 0)
		account_ids(ACCOUNT_SHIP, &uid, &gid);
	r = spool_dir_open(path, uid, gid, &c->ship_fds[INIT_SPOOL], &former);
	if (r == 0 && former != (uid == PRIVILEGES_KEEP_ID ? geteuid() : uid))
		log_warning(
			"the spool in %s belonged to uid %u, a former user of sentry-profd-ship: "
			"sentry-profd has given it and its files to uid %u",
			path, former, uid);
	if (r == -EWOULDBLOCK) {
		degraded_begin(&c->state->degraded, DEGRADED_SPOOL,
			       "another sentry-profd has the spool in %s", path);
		return 0;
	}
	if (r < 0 && spool_dir_check(path, uid, what) == 0)
		(void)snprintf(what, sizeof(what), "%s", strerror(-r));
	if (r < 0 && given[0] == '\0') {
		degraded_begin(&c->state->degraded, DEGRADED_SPOOL, "%s cannot be used: %s", path,
			       what);
		return 0;
	}
	if (r < 0)
		log_error("the spool in %s cannot be used: %s", path, what);
	return r;
}

/* Opened with the broker's rights: the key may be readable for root only. */
static int open_certificates(const struct children *c, bool is_start, int ret_fds[INIT_FILE_N])
{
	const struct config *config = &c->state->options.config;
	const struct {
		const char *key;
		const char *path;
	} files[INIT_FILE_N] = {
		[INIT_CA_CERTS] = {"ca_certs", config->ca_certs},
		[INIT_CLIENT_CERT] = {"client_cert", config->client_cert},
		[INIT_CLIENT_KEY] = {"client_key", config->client_key},
	};

	for (size_t i = INIT_CA_CERTS; i < INIT_FILE_N; i++) {
		const char *path = files[i].path;
		int r = path[0] == '\0' ? 0 : config_files_open(path, &ret_fds[i]);

		/* config_files_check() has logged it, as at a reload. */
		if (r < 0 && is_start && i == INIT_CA_CERTS && config->ca_certs_by_variable)
			continue;
		if (r < 0 && is_start)
			log_error("%s: cannot open %s: %s", files[i].key, path, strerror(-r));
		if (r < 0)
			return r;
	}
	return 0;
}

int ship_open_files(struct children *c)
{
	int r = open_spool(c);

	return r < 0 ? r : open_certificates(c, true, c->ship_fds);
}

bool ship_has_file(const struct ship *s, size_t file)
{
	/* Spool and client certificate are for Sentry's servers only. */
	return s->child.children->ship_fds[file] >= 0 &&
	       (!s->is_spotlight || file == INIT_CA_CERTS);
}

static void send_certificates(const struct children *c, struct ship *s)
{
	struct msg_certificates m = {
		.h = MSG_HEADER(MSG_CERTIFICATES),
	};
	int fds[INIT_FILE_N];
	size_t n = 0;

	for (size_t i = INIT_CA_CERTS; i < INIT_FILE_N; i++) {
		if (!ship_has_file(s, i))
			continue;
		fds[n++] = c->ship_fds[i];
		m.files |= 1u << i;
	}
	child_send(&s->child, &m, sizeof(m), fds, n);
}

void ship_renew_files(struct children *c)
{
	int renewed[INIT_FILE_N] = {-1, -1, -1, -1};

	if (open_certificates(c, false, renewed) < 0) {
		log_warning("a file of ca_certs, client_cert or client_key cannot be opened: the "
			    "old certificates and keys stay in use (repair the file, then: "
			    "sentry-profctl reload)");
		for (size_t i = INIT_CA_CERTS; i < INIT_FILE_N; i++)
			close_fd(&renewed[i]);
		return;
	}
	for (size_t i = INIT_CA_CERTS; i < INIT_FILE_N; i++) {
		close_fd(&c->ship_fds[i]);
		c->ship_fds[i] = renewed[i];
	}
	for (size_t i = 0; i < c->n_ships; i++)
		if (!c->ships[i]->child.is_leaving)
			send_certificates(c, c->ships[i]);
}

void ship_ask_to_finish(struct ship *s, uint64_t timeout_ns)
{
	const struct msg_number m = {
		.h = MSG_HEADER(MSG_SHIP_FINISH),
		.n = timeout_ns,
	};

	child_send(&s->child, &m, sizeof(m), NULL, 0);
}

static void report_lost(struct ship *s, uint32_t kind, uint32_t reason)
{
	uint64_t *quantity = &s->unreported.quantity[kind][reason];
	const struct msg_lost m = {
		.h = MSG_HEADER(MSG_LOST),
		.quantity = *quantity,
		.reason = reason,
		.kind = kind,
	};

	if (m.quantity == 0 || s->child.fd < 0)
		return;
	*quantity = 0;
	child_send(&s->child, &m, sizeof(m), NULL, 0);
}

void ship_report_lost(struct ship *s)
{
	for (uint32_t kind = 0; kind < ENVELOPE_KIND_N; kind++)
		for (uint32_t i = 0; i < CLIENT_REPORT_REASON_N; i++)
			report_lost(s, kind, i);
}

static void add_spool(struct spool_counts *sum, const struct spool_counts *more)
{
	counts_add(sum, more, sizeof(*sum));
}

void ship_sum_spool(const struct children *c, struct spool_counts *ret)
{
	*ret = c->spool_gone;
	for (size_t i = 0; i < c->n_ships; i++) {
		add_spool(ret, &c->ships[i]->spool_past);
		add_spool(ret, &c->ships[i]->spool_now);
	}
}

void ship_died(struct ship *s)
{
	/* count and bytes are those of the moment; the other members are sums. */
	const struct spool_counts now = {
		.count = s->spool_now.count,
		.bytes = s->spool_now.bytes,
	};

	s->probe_awaited = false;
	s->spool_error = 0;
	s->spool_now.count = 0;
	s->spool_now.bytes = 0;
	add_spool(&s->spool_past, &s->spool_now);
	s->spool_now = now;
}

/* The chunks that are still in the spool belong to no process. */
void ship_add_gone(struct children *c, const struct ship *s)
{
	add_spool(&c->spool_gone, &s->spool_past);
	add_spool(&c->spool_gone, &s->spool_now);
	c->spool_gone.count = 0;
	c->spool_gone.bytes = 0;
}
