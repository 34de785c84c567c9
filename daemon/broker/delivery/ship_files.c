/*
 * What ship reads and writes, opened with the rights of who started the daemon:
 * the spool's directory, and certificates.
 */
#include "daemon/broker/delivery/ship_files.h"
#include <string.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/socket.h"
#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "daemon/common/spool_dir.h"
#include "daemon/config/accounts.h"
#include "daemon/config/config_files.h"

/* The one that was asked for has to be there, the default is a help. */
static int open_spool(struct broker *b)
{
	const char *given = b->options.config.spool, *path = given;
	uint32_t uid = PRIVILEGES_KEEP_ID, gid = PRIVILEGES_KEEP_ID;
	int r;

	if (given[0] == '\0')
		path = geteuid() == 0 ? SPOOL_DIR_DEFAULT : "none";
	if (!b->has_dsn || strcmp(path, "none") == 0 || b->options.check_servers)
		return 0;
	if (geteuid() == 0)
		account_ids(ACCOUNT_SHIP, &uid, &gid);
	r = spool_dir_open(path, uid, gid, &b->ship_fds[INIT_SPOOL]);
	if (r == -EWOULDBLOCK) {
		log_warning("another sentry-profd has the spool in %s: chunks "
			    "wait in memory",
			    path);
		return 0;
	}
	if (r < 0 && given[0] == '\0') {
		log_warning("no spool in %s: %s: chunks wait in memory", path, strerror(-r));
		return 0;
	}
	if (r < 0)
		log_error("spool %s: %s", path, strerror(-r));
	return r;
}

/* With our rights: the key may be root's alone. */
static int open_certificates(const struct broker *b, bool is_start, int ret_fds[INIT_FILE_N])
{
	const struct config *c = &b->options.config;
	const struct {
		const char *key;
		const char *path;
	} files[INIT_FILE_N] = {
		[INIT_CA_CERTS] = {"ca_certs", c->ca_certs},
		[INIT_CLIENT_CERT] = {"client_cert", c->client_cert},
		[INIT_CLIENT_KEY] = {"client_key", c->client_key},
	};

	for (size_t i = INIT_CA_CERTS; i < INIT_FILE_N; i++) {
		const char *path = files[i].path;
		int r = path[0] == '\0' ? 0 : config_files_open(path, &ret_fds[i]);

		/* config_files_check has warned of it, as at a reload. */
		if (r < 0 && is_start && i == INIT_CA_CERTS && c->ca_certs_by_variable)
			continue;
		if (r < 0 && is_start)
			log_error("%s %s: %s", files[i].key, path, strerror(-r));
		if (r < 0)
			return r;
	}
	return 0;
}

int ship_files_open(struct broker *b)
{
	int r = open_spool(b);

	return r < 0 ? r : open_certificates(b, true, b->ship_fds);
}

bool ship_files_has(const struct ship *s, size_t file)
{
	/* The others are for servers of Sentry's: Spotlight is none. */
	return s->child.broker->ship_fds[file] >= 0 && (!s->is_spotlight || file == INIT_CA_CERTS);
}

static void send_certificates(const struct broker *b, struct ship *s)
{
	struct msg_certificates m = {
		.h = MSG_HEADER(MSG_CERTIFICATES),
	};
	int fds[INIT_FILE_N];
	size_t n = 0;

	for (size_t i = INIT_CA_CERTS; i < INIT_FILE_N; i++) {
		if (!ship_files_has(s, i))
			continue;
		fds[n++] = b->ship_fds[i];
		m.files |= 1u << i;
	}
	child_send(&s->child, &m, sizeof(m), fds, n);
}

void ship_files_renew(struct broker *b)
{
	int renewed[INIT_FILE_N] = {-1, -1, -1, -1};

	if (open_certificates(b, false, renewed) < 0) {
		log_warning("certificates and keys stay as they were");
		for (size_t i = INIT_CA_CERTS; i < INIT_FILE_N; i++)
			close_fd(&renewed[i]);
		return;
	}
	for (size_t i = INIT_CA_CERTS; i < INIT_FILE_N; i++) {
		close_fd(&b->ship_fds[i]);
		b->ship_fds[i] = renewed[i];
	}
	for (size_t i = 0; i < b->n_ships; i++)
		if (!b->ships[i]->child.is_leaving)
			send_certificates(b, b->ships[i]);
}
