#include "daemon/broker/control/inspect.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/children/children.h"
#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/discovery/identify.h"
#include "daemon/broker/report/modules.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/config/config_files.h"
#include "daemon/config/config_print.h"
#include "daemon/config/match.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/open.h"
#include "daemon/process/process.h"
#include "daemon/process/process_facts.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"
#include "lib/base/sealed.h"
#include "lib/ship/transport.h"
#include "proto/dsn.h"

/*
 * The timeout of an inspection: as long as daemon/ship/main.c allows for a request under way and
 * the probe.
 */
#define INSPECT_NS (90 * NS_PER_SEC)

/* The cost of an inspection in the caller's quota: a request to each server. */
#define INSPECT_WORK 200

/* The process of an inspection: sentry-profctl doctor asks which section matches it. */
struct subject {
	struct files *files;
	struct process process;
	struct process_facts facts;
	char exe[PATH_MAX];
	char cgroup[PATH_MAX];
	char container[PROCESS_FACTS_CONTAINER_SIZE];
	char cmdline[PATH_MAX];
	struct buf environ;
	bool is_awaited; /* the command line or the environment */
};

struct inspection {
	struct modules *modules;
	struct sealed sealed; /* the memfd that out writes to, unless out is stdout */
	FILE *out;
	int fd; /* the socket to the peer; -1: out is stdout */
	enum finding_grade worst;
	uint64_t deadline_ns;
	bool is_over;
	bool has_errors;	 /* the configuration has errors: no server is asked */
	struct subject *subject; /* NULL: no process was given */
};

#define SAY(i, finding, subject, ...) \
	finding_write((i)->out, &(i)->worst, finding, subject, __VA_ARGS__)

/* The configuration: its faults and its files. */

static void say_faults(struct inspection *i, const struct config_faults *faults)
{
	for (size_t k = 0; k < faults->n; k++)
		SAY(i, faults->v[k].is_warning ? FINDING_WARNING : FINDING_FAULT, "configuration",
		    "%s", faults->v[k].text);
}

static void say_configuration(struct inspection *i, const struct config *c,
			      const struct config_faults *faults)
{
	const struct modules *modules = i->modules;
	const bool is_running = i->fd >= 0;
	char path[OPTIONS_PATH_SIZE];

	say_faults(i, faults);
	options_config_path(&modules->state.options, path);
	if (path[0] == '\0')
		SAY(i, FINDING_OK, "configuration",
		    is_running ? "the daemon has no file: its command line names what it profiles"
			       : "there is no " CONFIG_PATH_DEFAULT
				 ": the command line names what is to be profiled");
	else if (faults->n == 0 && c->n_sections > 0)
		SAY(i, FINDING_OK, "configuration", "%s, %zu [target] section%s%s", path,
		    c->n_sections, c->n_sections == 1 ? "" : "s",
		    is_running ? ": the daemon's file" : "");
}

/* Checks the files as they are now, as the next start would find them. */
static void inspect_files(struct inspection *i)
{
	const struct config *used = &i->modules->state.options.config;
	static struct config_faults faults;
	struct config c;
	int r = options_read_as_start(&i->modules->state.options, &c, &faults);

	say_configuration(i, r < 0 ? used : &c, &faults);
	if (r == 0 && faults.n == 0 && !config_equal(used, &c))
		SAY(i, FINDING_WARNING, "configuration",
		    "it has changed since sentry-profd read it: the servers and sections below are "
		    "the old ones (sentry-profctl reload)");
	if (r == 0)
		config_fini(&c);
	config_faults_fini(&faults);
}

/* The servers: a ship probes each DSN. */

static struct ship *find_ship(const struct modules *modules, const char *dsn)
{
	for (size_t k = 0; k < modules->children.n_ships; k++)
		if (!modules->children.ships[k]->child.is_leaving &&
		    children_ship_is_for(modules->children.ships[k], dsn))
			return modules->children.ships[k];
	return NULL;
}

/* A ship that still owes its answer to an earlier inspection is not asked again. */
static void probe_server(struct modules *modules, const char *dsn)
{
	const bool is_new = find_ship(modules, dsn) == NULL;
	struct ship *s;

	if (dsn[0] == '\0' || children_get_ship(&modules->children, dsn, &s) < 0)
		return;
	if (is_new || s->only_probed_ns != 0)
		s->only_probed_ns = clock_mono_ns();
	if (s->probe_awaited)
		return;
	s->probed = (struct msg_probed){.status = 0};
	s->probe_awaited = s->child.fd >= 0;
	child_send_id(&s->child, MSG_PROBE, 0);
}

int inspect_probed(struct ship *s, const struct msg_probed *m)
{
	if (!s->probe_awaited || m->fault >= TRANSPORT_FAULT_N ||
	    memchr(m->text, '\0', sizeof(m->text)) == NULL)
		return -EPROTO;
	s->probe_awaited = false;
	s->probed = *m;
	return 0;
}

/* ahead_s can be any number, because a ship that was taken over may have sent it. */
static void say_clock(struct inspection *i, const char *endpoint, int64_t ahead_s)
{
	const uint64_t off_s = ahead_s < 0 ? -(uint64_t)ahead_s : (uint64_t)ahead_s;

	if (ahead_s >= -MSG_CLOCK_MAX_S && ahead_s <= MSG_CLOCK_MAX_S)
		return;
	SAY(i, FINDING_WARNING, "clock",
	    "the clock of this host is %llu s %s that of %s: profiles have the times of this host, "
	    "which the server does not correct (timedatectl set-ntp true)",
	    (unsigned long long)off_s, ahead_s < 0 ? "ahead of" : "behind", endpoint);
}

static void say_no_answer(struct inspection *i, const char *endpoint, const struct msg_probed *m)
{
	static const char *const advice[TRANSPORT_FAULT_N] = {
		[TRANSPORT_FAULT_OTHER] = "set https_proxy if the host needs a proxy, and ca_certs "
					  "for a certificate authority of your own",
		[TRANSPORT_FAULT_CONNECT] = "set https_proxy if the host needs a proxy; only DNS "
					    "and /etc/hosts are asked for names",
		[TRANSPORT_FAULT_PROXY] = "check https_proxy, http_proxy and no_proxy; set "
					  "ca_certs for an authority of the proxy's own",
		[TRANSPORT_FAULT_TLS] = "set ca_certs for a certificate authority of your own, and "
					"client_cert if the server asks for a certificate",
		[TRANSPORT_FAULT_PAGE] = "a firewall, a login page or another server answers in "
					 "its place: check the DSN's host, the proxy and the "
					 "firewall",
	};

	SAY(i, FINDING_FAULT, "server", "%s does not answer: %s (%s)", endpoint, m->text,
	    advice[m->fault]);
}

static const char *advice_of(int status)
{
	if (status < 400)
		return "redirects are not followed, since they could lead the key to any host: put "
		       "the server's own host into the DSN";
	if (status == 401 || status == 403)
		return LIMIT_DENIAL_ADVICE;
	if (status >= 502 && status <= 504)
		return "the server is overloaded or being upgraded, or a proxy does not reach it";
	if (status >= 500)
		return "an error of the server, which its log has";
	return "the DSN is wrong, or a proxy leads to another server";
}

static void say_answer(struct inspection *i, const char *endpoint, const struct msg_probed *m)
{
	if (m->status == 0) {
		say_no_answer(i, endpoint, m);
		return;
	}
	if (m->status < 300)
		SAY(i, FINDING_OK, "server", "%s accepts us", endpoint);
	else if (m->status == 429)
		SAY(i, FINDING_WARNING, "server",
		    "%s accepts no profiles at present (429): a rate limit, or the quota is used "
		    "up",
		    endpoint);
	else
		SAY(i, FINDING_FAULT, "server", "%s answers %d%s%s: %s", endpoint, m->status,
		    m->text[0] != '\0' ? ", " : "", m->text, advice_of(m->status));
	say_clock(i, endpoint, m->clock_ahead_s);
}

static void say_server(struct inspection *i, const char *subject, const char *text)
{
	const struct ship *s = find_ship(i->modules, text);
	char endpoint[DSN_ENDPOINT_SIZE];
	struct dsn dsn;

	/* Does not happen: config_resolve() has refused texts that are no DSN. */
	if (dsn_parse(&dsn, text) != DSN_OK || dsn_endpoint(&dsn, endpoint, sizeof(endpoint)) < 0)
		return;
	SAY(i, FINDING_OK, subject, "host %s, project %s", dsn.host, dsn.project);
	explicit_bzero(&dsn, sizeof(dsn));
	if (s != NULL && s->probed.h.type == MSG_PROBED)
		say_answer(i, endpoint, &s->probed);
	else
		SAY(i, FINDING_FAULT, "server", "%s cannot be checked: %s", endpoint,
		    s != NULL && s->probe_awaited ? "sentry-profd-ship takes too long"
						  : "sentry-profd-ship does not run, or has ended");
}

/* The rule of open_output() in daemon/broker/main.c: a service leaves no files. */
static void say_no_dsn(struct inspection *i)
{
	const struct options *o = &i->modules->state.options;
	const bool is_service =
		o->check_servers ? o->config.n_sections > 0 : i->modules->discovery != NULL;

	if (o->config.spotlight[0] != '\0')
		SAY(i, FINDING_WARNING, "DSN", "none is given: profiles go to Spotlight%s",
		    o->output != NULL ? " and into files" : " only");
	else if (o->output != NULL || !is_service)
		SAY(i, FINDING_WARNING, "DSN",
		    "none is given: profiles go into files only (dsn in "
		    "[sentry], SENTRY_DSN)");
	else
		SAY(i, FINDING_WARNING, "DSN",
		    "none is given, and no --output: profiles are discarded (dsn "
		    "in [sentry], SENTRY_DSN)");
}

/* Returns true if this section's DSN is that of [sentry] or of a section before it. */
static bool is_named_before(const struct config *c, size_t n)
{
	const char *dsn = c->sections[n].dsn;

	if (dsn[0] == '\0' || strcmp(dsn, c->dsn) == 0)
		return true;
	for (size_t k = 0; k < n; k++)
		if (strcmp(dsn, c->sections[k].dsn) == 0)
			return true;
	return false;
}

static bool all_sections_have_dsn(const struct config *c)
{
	for (size_t k = 0; k < c->n_sections; k++)
		if (c->sections[k].dsn[0] == '\0')
			return false;
	return c->n_sections > 0;
}

static void say_servers(struct inspection *i)
{
	const struct config *c = &i->modules->state.options.config;
	char subject[FINDING_SUBJECT_SIZE];

	if (c->dsn[0] != '\0')
		say_server(i, "DSN", c->dsn);
	else if (!all_sections_have_dsn(c))
		say_no_dsn(i);
	for (size_t k = 0; k < c->n_sections; k++) {
		if (is_named_before(c, k))
			continue;
		(void)snprintf(subject, sizeof(subject), "DSN of %s", c->sections[k].name);
		say_server(i, subject, c->sections[k].dsn);
	}
}

/* The sections: which of them match the process. */

static struct files *files_of(const struct modules *modules)
{
	return modules->discovery != NULL ? discovery_files(modules->discovery) : modules->files;
}

static void ask(struct subject *s, enum file_kind kind);

static void on_cmdline(void *ctx, const struct msg_file_request *request, int error, int fd,
		       const struct file_label *file)
{
	struct subject *s = ctx;
	ssize_t n = error == 0 ? read(fd, s->cmdline, sizeof(s->cmdline)) : 0;

	(void)request, (void)file;
	close_fd(&fd);
	s->facts.cmdline_size = n < 0 ? 0 : (size_t)n;
	ask(s, FILE_KIND_ENVIRON);
}

/* The environment is compared, and nothing of it is written. */
static void on_environ(void *ctx, const struct msg_file_request *request, int error, int fd,
		       const struct file_label *file)
{
	struct subject *s = ctx;

	(void)request, (void)file;
	if (error == 0 && buf_reserve(&s->environ) == 0)
		(void)!buf_read_fd(&s->environ, fd);
	close_fd(&fd);
	s->facts.environ = buf_string(&s->environ);
	s->facts.environ_size = s->environ.len;
	s->is_awaited = false;
}

/* Requests the command line or the environment. */
static void ask(struct subject *s, enum file_kind kind)
{
	const struct msg_file_request request = {.kind = kind};
	const int pidfd = s->process.pidfd;
	struct owner owner;
	int r = owner_read(s->process.pid, &owner);

	if (r == 0 && kind == FILE_KIND_CMDLINE)
		r = files_request(s->files, &request, &owner, pidfd, false, on_cmdline, s);
	else if (r == 0)
		r = files_request_own(s->files, &request, &owner, pidfd, on_environ, s);
	s->is_awaited = r == 0;
}

/*
 * Returns the pid that a pid file names. Discovery reads pid files by a helper, since reading
 * may hang. With --check-config there is no discovery and no service to delay, so the file is
 * read here.
 */
static int32_t pid_of_file(const struct modules *modules, const char *path)
{
	char text[OPEN_PID_FILE_MAX];
	ssize_t n;
	int fd;

	if (modules->discovery != NULL)
		return discovery_pid_file(modules->discovery, path);
	if (config_files_open(path, &fd) < 0)
		return 0;
	n = pread(fd, text, sizeof(text), 0);
	close_fd(&fd);
	return n > 0 ? process_facts_pid_file(text, (size_t)n) : 0;
}

static void read_facts(struct inspection *i, struct subject *s)
{
	const int32_t pid = s->process.pid;

	identify_read_exe(pid, s->exe);
	identify_read_cgroup(pid, s->cgroup);
	process_facts_container(s->cgroup, s->container);
	s->facts = (struct process_facts){
		.pid = pid,
		.uid = s->process.uid,
		.comm = s->process.comm,
		.exe = s->exe,
		.cmdline = s->cmdline,
		.cgroup = s->cgroup,
		.container = s->container,
		.environ = "",
	};
	s->files = files_of(i->modules);
	buf_init(&s->environ, MSG_ENVIRON_MAX);
	ask(s, FILE_KIND_CMDLINE);
}

/* If the process cannot be read, sentry-profctl doctor itself prints the reason. */
static void set_subject(struct inspection *i, int32_t pid)
{
	struct subject *s;
	enum process_fault fault;

	if (pid == 0 || i->modules->state.options.config.n_sections == 0)
		return;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return;
	fault = process_look(pid, &s->process);
	if (fault != PROCESS_OK && fault != PROCESS_TRACED) {
		free(s);
		return;
	}
	read_facts(i, s);
	i->subject = s;
}

static void free_subject(struct inspection *i)
{
	struct subject *s = i->subject;

	if (s == NULL)
		return;
	files_forget(s->files, s);
	close_fd(&s->process.pidfd);
	buf_wipe(&s->environ);
	free(s);
	i->subject = NULL;
}

static bool matches(struct inspection *i, const struct section_config *section)
{
	struct process_facts *facts = &i->subject->facts;

	facts->pid_file_pid =
		section->pid_file[0] == '\0' ? 0 : pid_of_file(i->modules, section->pid_file);
	return match_process(section, facts) == MATCH_YES;
}

static void say_section(struct inspection *i, const struct section_config *section,
			enum finding_grade finding)
{
	struct subject *s = i->subject;
	struct match_refusal why;

	if (matches(i, section)) {
		SAY(i, FINDING_OK, "section", "[target \"%s\"] matches it", section->name);
		return;
	}
	if (!match_refusal(section, &s->facts, &why))
		return;
	if (strcmp(why.key, "pid_file") == 0)
		SAY(i, finding, "section",
		    "[target \"%s\"] does not match it: pid_file = %s names %s", section->name,
		    why.pattern, s->facts.pid_file_pid == 0 ? "no process" : why.fact);
	else if (strcmp(why.key, "env") == 0)
		SAY(i, finding, "section",
		    "[target \"%s\"] does not match it: its environment does not match env NAME",
		    section->name);
	else
		SAY(i, finding, "section",
		    "[target \"%s\"] does not match it: %s = %s, and it has %s%s", section->name,
		    why.key, why.pattern, why.fact[0] == '\0' ? "none" : why.fact,
		    why.is_part ? " (the pattern is compared with all of it, not with a part)"
				: "");
}

/* A process that is profiled without a section needs no section that matches. */
static void say_sections(struct inspection *i)
{
	const struct config *c = &i->modules->state.options.config;
	struct subject *s = i->subject;
	bool is_one;

	if (s == NULL)
		return;
	if (process_facts_decline(&s->facts)) {
		SAY(i, FINDING_OK, "section",
		    "SENTRY_PROFILER=off in its environment: no section profiles it");
		return;
	}
	is_one = instance_of_pid(&i->modules->targets, s->process.pid) != NULL;
	for (size_t k = 0; k < c->n_sections; k++)
		is_one |= matches(i, &c->sections[k]);
	for (size_t k = 0; k < c->n_sections; k++)
		say_section(i, &c->sections[k], is_one ? FINDING_OK : FINDING_WARNING);
}

/* The inspection: its beginning, its checks at every turn, and its end. */

/*
 * Asks the ships to probe their servers, and reads the facts about process pid (0: no process).
 * Does neither if the configuration has errors.
 */
static int begin_inspection(struct inspector *in, int32_t pid, bool has_errors,
			    struct inspection **ret)
{
	const struct config *c = &in->modules->state.options.config;
	struct inspection *i = calloc(1, sizeof(*i));

	if (i == NULL)
		return -ENOMEM;
	i->modules = in->modules;
	i->fd = -1;
	i->out = stdout;
	i->deadline_ns = clock_mono_ns() + INSPECT_NS;
	i->has_errors = has_errors;
	if (!has_errors) {
		probe_server(in->modules, c->dsn);
		for (size_t k = 0; k < c->n_sections; k++)
			probe_server(in->modules, c->sections[k].dsn);
		set_subject(i, pid);
	}
	in->current = i;
	*ret = i;
	return 0;
}

void inspect_request(struct inspector *in, const struct control_peer *peer,
		     const struct protocol_request *m, struct control_answer *ret)
{
	struct inspection *i;
	struct sealed sealed;
	uint64_t size;
	int fds[2] = {-1, -1}, r;

	ret->work = INSPECT_WORK;
	if (!peer->identity.is_operator) {
		control_refuse(ret, PROTOCOL_DENIED,
			       "not permitted: the check sends requests with the keys of the "
			       "configuration and quotes its lines, so only root and the group "
			       "sentry-profd may ask for it, and not the group sentry-profd-view");
		return;
	}
	if (in->current != NULL) {
		control_refuse(ret, PROTOCOL_BUSY,
			       "another sentry-profctl doctor is running: try again");
		return;
	}
	r = sealed_open(&sealed, "findings");
	if (r == 0) {
		r = ipc_pair(fds);
		if (r == 0 && fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0)
			r = -errno;
		if (r == 0)
			r = begin_inspection(in, m->pid, false, &i);
		if (r != 0)
			(void)!sealed_close(&sealed, r, &ret->fd, &size);
	}
	if (r != 0) {
		close_fd(&fds[0]);
		close_fd(&fds[1]);
		control_refuse(ret, PROTOCOL_FAILED, "%s", strerror(-r));
		return;
	}
	i->sealed = sealed;
	i->out = sealed.out;
	i->fd = fds[0];
	ret->fd = fds[1];
	inspect_files(i);
}

int inspect_options(struct inspector *in, const struct config_faults *faults)
{
	const int32_t pid =
		in->modules->state.options.n_pids > 0 ? in->modules->state.options.pids[0] : 0;
	struct inspection *i;
	int r = begin_inspection(in, pid, faults->n_errors > 0, &i);

	if (r < 0)
		return r;
	say_configuration(i, &in->modules->state.options.config, faults);
	return 0;
}

static bool is_answered(const struct inspection *i)
{
	const struct children *children = &i->modules->children;

	if (clock_mono_ns() >= i->deadline_ns)
		return true;
	for (size_t k = 0; k < children->n_ships; k++)
		if (children->ships[k]->probe_awaited)
			return false;
	return i->subject == NULL || !i->subject->is_awaited;
}

/* Sends the findings. If the peer has closed the socket, the findings are dropped. */
static void send_findings(struct inspection *i)
{
	struct protocol_checked m = {.bytes = 0};
	uint64_t size;
	int fd, r = sealed_close(&i->sealed, 0, &fd, &size);

	if (r == 0) {
		m.bytes = (uint32_t)size;
		(void)!ipc_send(i->fd, &m, sizeof(m), &fd, 1);
		close_fd(&fd);
	}
	close_fd(&i->fd);
}

void inspect_check(struct inspector *in)
{
	struct inspection *i = in->current;

	if (i == NULL || i->is_over || !is_answered(i))
		return;
	if (!i->has_errors)
		say_servers(i);
	say_sections(i);
	free_subject(i);
	i->is_over = true;
	if (i->fd < 0)
		return;
	send_findings(i);
	free(i);
	in->current = NULL;
}

bool inspect_is_over(const struct inspector *in)
{
	return in->current->is_over;
}

enum finding_grade inspect_worst(const struct inspector *in)
{
	return in->current->worst;
}
