/* The configuration, and whether its servers take what we send. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "daemon/child.h"
#include "daemon/config.h"
#include "daemon/config_files.h"
#include "daemon/doctor.h"
#include "daemon/process.h"
#include "daemon/own_child.h"
#include "proto/dsn.h"

static void say_faults(struct doctor *d, const struct config_faults *faults)
{
	for (size_t i = 0; i < faults->n; i++)
		doctor_say(d,
			   faults->v[i].is_warning ? FINDING_WARNING
						   : FINDING_FAULT,
			   "configuration", "%s", faults->v[i].text);
}

/* That of --config, of the daemon that runs, or of one that will; NULL: none.
 */
static const char *config_path(const struct doctor *d)
{
	if (d->config != NULL)
		return d->config;
	if (!d->is_told)
		return CONFIG_PATH_DEFAULT;
	return d->daemon_config[0] != '\0' ? d->daemon_config : NULL;
}

/* Are its rights ours? Else what we cannot open is no fault, nor its spool. */
static bool is_the_daemons(const struct doctor *d)
{
	return !d->is_told || geteuid() == 0 ||
	       process_user(d->daemon_pid) == geteuid();
}

/* 0: *ret is there to be used, and finished. */
static int read_config(struct doctor *d, config_env_fn get, struct config *ret)
{
	const char *path = config_path(d);
	struct config_faults faults = {.n = 0};
	int r = 0;

	if (path == NULL) {
		doctor_say(d, FINDING_OK, "configuration",
			   "the daemon has no file: what it profiles was given "
			   "by --pid");
		config_init(ret);
	} else if (d->config == NULL && !d->is_told && access(path, F_OK) < 0 &&
		   errno == ENOENT) {
		doctor_say(d, FINDING_OK, "configuration",
			   "there is no %s: what is to be profiled is given "
			   "by --pid",
			   path);
		config_init(ret);
	} else if (access(path, R_OK) < 0) {
		doctor_say(d,
			   d->config != NULL ? FINDING_FAULT : FINDING_WARNING,
			   "configuration", "%s: %s%s", path, strerror(errno),
			   errno == EACCES ? "; run this as root" : "");
		return -EACCES;
	} else {
		r = config_load(path, ret, &faults);
	}
	doctor_options(d, ret);
	if (config_resolve(ret, get, &faults) < 0)
		r = -EINVAL;
	if (is_the_daemons(d))
		config_files_check(ret, CONFIG_IS_CHECKED, &faults);
	if (faults.n_errors > 0)
		r = -EINVAL;
	if (r < 0)
		config_fini(ret);
	say_faults(d, &faults);
	if (r == 0 && faults.n == 0 && ret->n_targets > 0)
		doctor_say(d, FINDING_OK, "configuration",
			   "%s, %zu kind%s of targets%s", path, ret->n_targets,
			   ret->n_targets == 1 ? "" : "s",
			   d->config == NULL && d->is_told
				   ? ": the daemon's file"
				   : "");
	config_faults_fini(&faults);
	return r;
}

static void set_or_not(const char *name, const char *value)
{
	if (value != NULL)
		(void)setenv(name, value, 1);
	else
		(void)unsetenv(name);
}

static void use_proxies(const struct config *c, config_env_fn get)
{
	if (get != getenv)
		for (size_t i = 0; own_ship_environment[i] != NULL; i++)
			set_or_not(own_ship_environment[i],
				   get(own_ship_environment[i]));
	if (c->http_proxy[0] != '\0')
		(void)setenv("http_proxy", c->http_proxy, 1);
	if (c->https_proxy[0] != '\0')
		(void)setenv("https_proxy", c->https_proxy, 1);
	if (c->no_proxy[0] != '\0')
		(void)setenv("no_proxy", c->no_proxy, 1);
}

/* What of fds is open, by the bits of ret_files. */
static size_t open_certificates(struct doctor *d, const struct config *c,
				int ret_fds[INIT_FILE_N], uint32_t *ret_files)
{
	const char *const paths[INIT_FILE_N] = {
		[INIT_SPOOL] = "",
		[INIT_CA_CERTS] = c->ca_certs,
		[INIT_CLIENT_CERT] = c->client_cert,
		[INIT_CLIENT_KEY] = c->client_key,
	};
	size_t n = 0;

	*ret_files = 0;
	for (size_t i = 0; i < INIT_FILE_N; i++) {
		int r;

		if (paths[i][0] == '\0')
			continue;
		r = config_files_open(paths[i], &ret_fds[n]);
		if (r == 0) {
			n++;
			*ret_files |= 1u << i;
		} else if (!is_the_daemons(d)) {
			/*
			 * Of the daemon's own files read_config() has
			 * already printed what is wrong.
			 */
			doctor_say(d, FINDING_WARNING, "certificates", "%s: %s",
				   paths[i], strerror(-r));
		}
	}
	return n;
}

static int converse(struct doctor *d, const struct config *c, const char *dsn,
		    struct own_child *ship, struct msg_probed *ret)
{
	struct msg_probe ask = {
		.h = MSG_HEADER(MSG_PROBE),
		.compression = (uint32_t)c->compression,
	};
	int files[INIT_FILE_N], r;
	struct ipc_message m;
	uint32_t mask;
	size_t n;

	n = open_certificates(d, c, files, &mask);
	r = own_child_start_ship(ship, files, n, mask);
	while (n > 0)
		close_fd(&files[--n]);
	/* It fits: dsn_parse has taken it. */
	memcpy(ask.dsn, dsn, strlen(dsn) + 1);
	if (r == 0)
		r = ipc_send(ship->fd, &ask, sizeof(ask), NULL, 0);
	explicit_bzero(&ask, sizeof(ask));
	if (r == 0)
		r = own_child_take(ship, MSG_PROBED, &m);
	if (r == 0) {
		memcpy(ret, m.bytes, sizeof(*ret));
		ret->text[sizeof(ret->text) - 1] = '\0';
	}
	return r;
}

static void say_answer(struct doctor *d, const char *endpoint,
		       const struct msg_probed *m)
{
	if (m->status >= 200 && m->status < 300)
		doctor_say(d, FINDING_OK, "server", "%s accepts us", endpoint);
	else if (m->status == 429)
		doctor_say(d, FINDING_WARNING, "server",
			   "%s limits us at present (429): it takes profiles "
			   "when that is over, or the quota is spent",
			   endpoint);
	else if (m->status != 0)
		doctor_say(d, FINDING_FAULT, "server", "%s answers %d%s%s: %s",
			   endpoint, m->status, m->text[0] != '\0' ? ", " : "",
			   m->text,
			   m->status == 401 || m->status == 403
				   ? "the DSN's key is not one of that project "
				     "(its settings show the DSN)"
				   : "the DSN, or a proxy between, leads "
				     "elsewhere");
	else
		doctor_say(d, FINDING_FAULT, "server",
			   "%s does not answer: %s (a proxy: https_proxy; an "
			   "authority of your own: ca_certs)",
			   endpoint, m->text);
}

static void check_server(struct doctor *d, const struct config *c,
			 const char *text, const struct dsn *dsn)
{
	char endpoint[DSN_ENDPOINT_SIZE];
	struct msg_probed answer;
	struct own_child ship;
	int r;

	if (dsn_endpoint(dsn, endpoint, sizeof(endpoint)) < 0)
		return;
	r = converse(d, c, text, &ship, &answer);
	own_child_end(&ship);
	if (r < 0)
		doctor_say(d, FINDING_FAULT, "server",
			   "%s cannot be asked: sentry-profd-ship: %s",
			   endpoint, strerror(-r));
	else
		say_answer(d, endpoint, &answer);
}

static void check_dsn(struct doctor *d, const struct config *c,
		      const char *subject, const char *text)
{
	struct dsn dsn;
	const enum dsn_result result = dsn_parse(&dsn, text);

	if (result == DSN_OK) {
		doctor_say(d, FINDING_OK, subject, "host %s, project %s",
			   dsn.host, dsn.project);
		check_server(d, c, text, &dsn);
	} else if (result == DSN_EMPTY) {
		doctor_say(d, FINDING_WARNING, subject,
			   "none is given: profiles go into files only (dsn in "
			   "[sentry], SENTRY_DSN)");
	} else {
		doctor_say(d, FINDING_FAULT, subject, "%s",
			   dsn_result_text(result));
	}
	explicit_bzero(&dsn, sizeof(dsn));
}

/* Of the targets, each that is not among those before it. */
static bool is_known(const struct config *c, size_t n)
{
	const char *dsn = c->targets[n].dsn;

	if (dsn[0] == '\0' || strcmp(dsn, c->dsn) == 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (strcmp(dsn, c->targets[i].dsn) == 0)
			return true;
	return false;
}

static bool all_have_their_own(const struct config *c)
{
	for (size_t i = 0; i < c->n_targets; i++)
		if (c->targets[i].dsn[0] == '\0')
			return false;
	return c->n_targets > 0;
}

void doctor_delivery(struct doctor *d)
{
	char subject[CONFIG_NAME_MAX + 8];
	config_env_fn get;
	struct config c;
	int r;

	/* Keys shall be in no core file. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	get = doctor_environment(d);
	r = read_config(d, get, &c);
	if (r == 0)
		use_proxies(&c, get);
	doctor_environment_forget();
	if (r < 0)
		return;
	if (c.dsn[0] != '\0' || !all_have_their_own(&c))
		check_dsn(d, &c, "DSN", c.dsn);
	for (size_t i = 0; i < c.n_targets; i++) {
		if (is_known(&c, i))
			continue;
		(void)snprintf(subject, sizeof(subject), "DSN of %s",
			       c.targets[i].name);
		check_dsn(d, &c, subject, c.targets[i].dsn);
	}
	config_fini(&c);
}
