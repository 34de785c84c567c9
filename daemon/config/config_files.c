#include "daemon/config/config_files.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/common/pem.h"
#include "daemon/common/spool_dir.h"
#include "daemon/config/accounts.h"
#include "daemon/config/config_fault.h"
#include "daemon/config/config_keys.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/process/exe_link.h"
#include "lib/base/buf.h"

struct checker {
	const struct config *config;
	struct config_faults *faults;
	enum config_occasion occasion;
};

/*
 * Adds a fault of a file that a key of [sentry] names: "ca_certs: /path: what". At a reload the
 * fault is only a warning, because ship keeps the former file, and the new file may still be
 * incomplete.
 */
static void file_fault(const struct checker *k, const char *key, const char *path, const char *what)
{
	const struct config_origin *at = config_origin(k->config, SECTION_SENTRY, key);
	const bool is_warning = k->occasion == CONFIG_AT_RELOAD ||
				(path == k->config->ca_certs && k->config->ca_certs_by_variable);

	if (at->given_by != NULL)
		config_fault_add(k->faults, k->config, at, is_warning, "%s: %s", path, what);
	else
		config_fault_add(k->faults, k->config, at, is_warning, "%s: %s: %s", key, path,
				 what);
}

int config_files_open(const char *path, int *ret_fd)
{
	/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int r = 0;
	char byte;

	if (fd < 0 || pread(fd, &byte, 1, 0) < 0)
		r = -errno;
	if (r < 0)
		close_fd(&fd);
	else
		*ret_fd = fd;
	return r;
}

static int read_file(const char *path, size_t most, struct buf *ret)
{
	int fd = -1, r = config_files_open(path, &fd);

	buf_init(ret, most);
	if (r == 0)
		r = buf_reserve(ret); /* a key */
	if (r == 0)
		r = buf_read_fd(ret, fd);
	close_fd(&fd);
	return r == -E2BIG ? -EFBIG : r;
}

static const char *pem_text(enum pem_result result, const char *none)
{
	switch (result) {
	case PEM_OK:
		break;
	case PEM_NONE:
		return none;
	case PEM_CUT_OFF:
		return "is cut off: a BEGIN line has no END line";
	case PEM_ENCRYPTED:
		return "the key is encrypted, and the daemon cannot ask for the "
		       "passphrase: openssl pkey writes the key without one";
	}
	return NULL;
}

/* Returns what is wrong with the blocks of this label, or NULL. */
static const char *pem_problem(const struct buf *b, const char *label, const char *none)
{
	return pem_text(pem_check(buf_string(b), label), none);
}

#define NO_CERTIFICATE "holds no certificate in PEM (-----BEGIN CERTIFICATE)"
#define NO_KEY	       "holds no private key in PEM (-----BEGIN PRIVATE KEY)"

/*
 * no_certificate and no_key are the fault to report if the file has no certificate or no key; NULL:
 * the file does not need one.
 */
static void check_file(const struct checker *k, const char *key, const char *path, size_t most,
		       const char *no_certificate, const char *no_key)
{
	const char *problem = NULL;
	struct buf b;
	int r;

	if (path[0] == '\0')
		return;
	r = read_file(path, most, &b);
	if (r < 0)
		problem = strerror(-r);
	if (problem == NULL && no_certificate != NULL)
		problem = pem_problem(&b, "CERTIFICATE", no_certificate);
	if (problem == NULL && no_key != NULL)
		problem = pem_problem(&b, "PRIVATE KEY", no_key);
	if (problem != NULL)
		file_fault(k, key, path, problem);
	buf_wipe(&b);
}

static void check_certificates(const struct checker *k)
{
	const struct config *c = k->config;
	const char *no_key = NO_KEY ", and there is no client_key";

	check_file(k, "ca_certs", c->ca_certs, MSG_CA_CERTS_BYTES_MAX, NO_CERTIFICATE, NULL);
	check_file(k, "client_cert", c->client_cert, MSG_CLIENT_CERT_BYTES_MAX, NO_CERTIFICATE,
		   c->client_key[0] == '\0' ? no_key : NULL);
	check_file(k, "client_key", c->client_key, MSG_CLIENT_CERT_BYTES_MAX, NULL, NO_KEY);
}

/* Called for --check-config only, because exe_link_resolve() can hang. */
static void check_exes(const struct checker *k)
{
	for (size_t i = 0; i < k->config->n_sections; i++) {
		const struct section_config *section = &k->config->sections[i];
		char resolved[PATH_MAX], why[EXE_LINK_TEXT_MAX];
		int r;

		if (!exe_link_is_path(section->exe))
			continue;
		r = exe_link_resolve(section->exe, resolved);
		exe_link_text(section->exe, r, resolved, why);
		if (why[0] != '\0')
			config_fault_add(k->faults, k->config,
					 config_section_origin(section, "exe"), true, "exe: %s: %s",
					 section->exe, why);
	}
}

static bool has_dsn(const struct config *c)
{
	bool any = c->dsn[0] != '\0';

	for (size_t i = 0; i < c->n_sections; i++)
		any |= c->sections[i].dsn[0] != '\0';
	return any;
}

/* A configured spool must be usable. If the default spool is not usable, chunks wait in memory. */
static void check_spool(const struct checker *k)
{
	const struct config *c = k->config;
	const struct config_origin *at = config_origin(c, SECTION_PROFILER, "spool");
	const bool is_given = c->spool[0] != '\0';
	const char *path = is_given ? c->spool : SPOOL_DIR_DEFAULT;
	uint32_t uid = geteuid(), gid;
	char what[SPOOL_DIR_FAULT_MAX];

	if (!has_dsn(c) || strcmp(c->spool, "none") == 0)
		return;
	if (!is_given && (geteuid() != 0 || k->occasion != CONFIG_AT_CHECK))
		return;
	if (geteuid() == 0)
		account_ids(ACCOUNT_SHIP, &uid, &gid);
	if (spool_dir_check(path, uid, what) == 0)
		return;
	if (is_given)
		config_fault_add(k->faults, c, at, false, "%s%s: %s",
				 at->given_by != NULL ? "" : "spool: ", path, what);
	else
		config_fault_add(k->faults, c, at, true,
				 "the spool in %s cannot be used: %s: chunks wait in memory", path,
				 what);
}

void config_files_check(const struct config *c, enum config_occasion occasion,
			struct config_faults *faults)
{
	const struct checker k = {c, faults, occasion};

	check_certificates(&k);
	if (occasion == CONFIG_AT_CHECK)
		check_exes(&k);
	if (occasion != CONFIG_AT_RELOAD)
		check_spool(&k);
}
