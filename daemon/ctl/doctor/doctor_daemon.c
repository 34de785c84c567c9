/* What the running daemon reports of itself, of its servers and of the process. */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/control_client.h"
#include "daemon/config/config.h"
#include "daemon/ctl/doctor/doctor_checks.h"
#include "daemon/ctl/common/status_table.h"
#include "daemon/process/process.h"
#include "lib/base/buf.h"

static void say_no_daemon(struct doctor *d, int error)
{
	if (error == ENOENT || error == ECONNREFUSED || error == ENOTDIR)
		doctor_say(d, FINDING_WARNING, "daemon",
			   "does not run: no process listens at %s (systemctl "
			   "start sentry-profd)",
			   d->socket);
	else
		doctor_say(d, FINDING_WARNING, "daemon", "cannot be asked at %s: %s", d->socket,
			   strerror(error));
}

/* Returns the status of the daemon; NULL after a finding. The caller frees it. */
static json_t *ask_status(struct doctor *d, struct control_client *client)
{
	struct protocol_answer answer;
	json_t *root = NULL;
	struct buf text;
	int fd = -1, r;

	buf_init(&text, 0);
	r = control_client_request(client, PROTOCOL_STATUS, 0, NULL, &answer, &fd);
	if (r == 0)
		r = control_client_read(fd, answer.fd_bytes, &text);
	if (r == 0)
		root = json_loadb(buf_string(&text), text.len, 0, NULL);
	if (root == NULL)
		doctor_say(d, FINDING_FAULT, "daemon", "runs, but sends no valid status: %s",
			   strerror(r < 0 ? -r : EPROTO));
	buf_fini(&text);
	close_fd(&fd);
	return root;
}

/* Starts the check in the daemon. It works meanwhile; doctor_delivery() reads the result. */
static void ask_findings(struct doctor *d, struct control_client *client)
{
	struct protocol_answer answer;
	int r;

	if (d->config != NULL)
		return;
	r = control_client_request(client, PROTOCOL_CHECK, d->is_elsewhere ? 0 : d->pid, NULL,
				   &answer, &d->findings_fd);
	if (r == 0 && answer.result != PROTOCOL_OK)
		doctor_say(d, FINDING_WARNING, "daemon",
			   "refuses to check its configuration and servers: %s; "
			   "the checks below use " CONFIG_PATH_DEFAULT,
			   answer.text[0] != '\0' ? answer.text
						  : control_client_result_text(answer.result));
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text == NULL ? "" : text;
}

/* Prints what `sentry-profctl status` prints of the daemon. */
static void say_faults(struct doctor *d, const json_t *daemon)
{
	char *text = NULL, *line, *rest;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL) {
		doctor_say(d, FINDING_WARNING, "daemon", "its faults cannot be shown: %s",
			   strerror(errno));
		return;
	}
	status_table_faults(daemon, out);
	(void)fclose(out);
	for (rest = text; (line = strsep(&rest, "\n")) != NULL;)
		if (*line != '\0')
			doctor_say(d, FINDING_WARNING, "daemon", "%s", line);
	free(text);
}

/* The daemon reports its capabilities and its degraded states only to users who may operate it. */
static void check_rights(struct doctor *d, const json_t *daemon)
{
	const char *hex = text_of(daemon, "capabilities");
	const json_t *degraded = json_object_get(daemon, "degraded");
	char *end;

	d->capabilities = strtoull(hex, &end, 16);
	d->has_capabilities = *hex != '\0' && *end == '\0';
	d->may_trace = d->has_capabilities ? (d->capabilities & CAPABILITY(CAP_SYS_PTRACE)) != 0
					   : d->daemon_pid != 0 && process_user(d->daemon_pid) == 0;
	if (json_is_array(degraded) && json_array_size(degraded) == 0)
		doctor_say(d, FINDING_OK, "daemon", "keeps all that it promises");
}

static void check_restarts(struct doctor *d, const json_t *daemon)
{
	json_t *kinds = json_object_get(daemon, "restarts"), *reasons, *n;
	const char *kind, *reason;

	json_object_foreach(kinds, kind, reasons)
	{
		json_object_foreach(reasons, reason, n)
		{
			if (json_integer_value(n) > 0)
				doctor_say(d, FINDING_WARNING, "daemon",
					   "its %s was started again %lld "
					   "times (%s): the log has the reason",
					   kind, (long long)json_integer_value(n), reason);
		}
	}
}

static void check_daemon(struct doctor *d, const json_t *daemon)
{
	const char *version = text_of(daemon, "version");
	const json_int_t pid = json_integer_value(json_object_get(daemon, "pid"));

	d->is_elsewhere = pid != d->daemon_pid;
	if (!d->is_elsewhere)
		d->capture_pid =
			(int32_t)json_integer_value(json_object_get(daemon, "capture_pid"));
	d->uses_perf = strcmp(text_of(daemon, "sampler"), "perf") == 0;
	if (strcmp(version, SENTRY_PROFD_VERSION) != 0)
		doctor_say(d, FINDING_WARNING, "daemon",
			   "is of version %s, this is " SENTRY_PROFD_VERSION ": restart it",
			   version);
	else
		doctor_say(d, FINDING_OK, "daemon", "runs, pid %lld", (long long)pid);
	check_rights(d, daemon);
	say_faults(d, daemon);
	check_restarts(d, daemon);
}

static void report_target(struct doctor *d, const json_t *target)
{
	const char *name = text_of(target, "name");
	const char *state = text_of(target, "state");
	const char *error = text_of(target, "last_error");

	d->is_profiled = strcmp(state, "profiling") == 0;
	d->stays_on_crash = strcmp(text_of(target, "on_crash"), "stay") == 0;
	d->attaches_anyway = strcmp(text_of(target, "leak_check"), "attach") == 0;
	if (strcmp(state, "unsampled") == 0)
		doctor_say(
			d, FINDING_WARNING, "target",
			"it belongs to [target \"%s\"], but profile_session_sample_rate excludes "
			"it",
			name);
	else if (strcmp(state, "left_out") == 0 || strcmp(state, "waiting") == 0)
		doctor_say(d, FINDING_FAULT, "target",
			   "it belongs to [target \"%s\"], but is not profiled%s%s", name,
			   *error != '\0' ? ": " : "", error);
	else if (strcmp(state, "stopped") == 0 &&
		 strcmp(text_of(target, "lifecycle"), "trace") == 0)
		doctor_say(d, FINDING_OK, "target",
			   "it belongs to [target \"%s\"], and is profiled while it has a sampled "
			   "root "
			   "span (profile_lifecycle = trace)",
			   name);
	else if (strcmp(state, "stopped") == 0)
		doctor_say(d, FINDING_WARNING, "target",
			   "it belongs to [target \"%s\"], but is not profiled: autostart is not "
			   "yes, or "
			   "it was stopped (sentry-profctl start %d)",
			   name, d->pid);
	else
		doctor_say(d, d->is_profiled ? FINDING_OK : FINDING_WARNING, "target",
			   "it belongs to [target \"%s\"]: %s%s%s", name, state,
			   *error != '\0' ? "; last error: " : "", error);
}

static void find_target(struct doctor *d, const json_t *targets)
{
	const json_t *target;
	size_t i;

	json_array_foreach(targets, i, target)
	{
		if (json_integer_value(json_object_get(target, "pid")) == d->pid) {
			report_target(d, target);
			return;
		}
	}
	doctor_say(d, FINDING_WARNING, "target",
		   "process %d belongs to no [target] (sentry-profctl attach "
		   "%d profiles it)",
		   d->pid, d->pid);
}

void doctor_daemon(struct doctor *d)
{
	struct control_client client;
	int r = control_client_open(d->socket, true, &client);
	json_t *root;

	if (r < 0) {
		say_no_daemon(d, -r);
		return;
	}
	d->daemon_pid = control_client_pid(&client);
	root = ask_status(d, &client);
	if (root != NULL) {
		check_daemon(d, json_object_get(root, "daemon"));
		if (d->pid != 0 && d->is_elsewhere)
			doctor_say(
				d, FINDING_WARNING, "target",
				"the daemon is in another pid namespace, where %d is no process or "
				"another one: run doctor there",
				d->pid);
		else if (d->pid != 0)
			find_target(d, json_object_get(root, "targets"));
		json_decref(root);
		ask_findings(d, &client);
	}
	control_client_close(&client);
}
