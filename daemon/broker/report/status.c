#include "daemon/broker/report/status.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/children/reap.h"
#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/children/ship.h"
#include "daemon/broker/report/modules.h"
#include "daemon/broker/report/stats.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/lifecycle.h"
#include "daemon/broker/targets/sections.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/common/privileges.h"
#include "lib/base/clock.h"
#include "lib/base/sealed.h"
#include "lib/base/utf8.h"

static const char *state_name(enum protocol_state state)
{
	switch (state) {
	case PROTOCOL_STATE_PROFILING:
		return "profiling";
	case PROTOCOL_STATE_STOPPED:
	case PROTOCOL_STATE_NONE:
		break;
	case PROTOCOL_STATE_UNSAMPLED:
		return "unsampled";
	case PROTOCOL_STATE_LIMITED:
		return "limited";
	case PROTOCOL_STATE_TRACED_BY_OTHER:
		return "traced_by_other";
	case PROTOCOL_STATE_LEFT_OUT:
		return "left_out";
	case PROTOCOL_STATE_CRASHED:
		return "crashed";
	case PROTOCOL_STATE_DETACHING:
		return "detaching";
	case PROTOCOL_STATE_WAITING:
		return "waiting";
	}
	return "stopped";
}

/* Writes a JSON string. Characters of utf8_is_unsafe() and bytes that are not UTF-8 become "?". */
static void put_string(FILE *out, const char *text)
{
	(void)fputc('"', out);
	while (*text != '\0') {
		const size_t n = utf8_length(text);

		if (n == 0 || utf8_is_unsafe(text)) {
			(void)fputc('?', out);
			text += n > 0 ? n : 1;
			continue;
		}
		if (*text == '"' || *text == '\\')
			(void)fputc('\\', out);
		(void)fwrite(text, 1, n, out);
		text += n;
	}
	(void)fputc('"', out);
}

static void put_string_or_null(FILE *out, const char *text)
{
	if (text[0] == '\0')
		(void)fputs("null", out);
	else
		put_string(out, text);
}

static uint64_t threads_of(const struct modules *modules, const struct instance *i)
{
	if (i->run == NULL || i->run->phase != RUN_PROFILED)
		return 0;
	return totals_threads(&modules->targets, i->run);
}

/* Writes until when a process is released. */
static const char *release_text(const struct instance *i, char *ret, size_t size)
{
	const uint64_t now_ns = i->targets->state->clocks.mono();

	if (now_ns >= i->released_until_ns)
		(void)snprintf(ret, size, "released until no other process traces it");
	else
		(void)snprintf(
			ret, size, "released for %llu s",
			(unsigned long long)((i->released_until_ns - now_ns) / NS_PER_SEC + 1));
	return ret;
}

/* Returns the last error, or the reason why the process is not profiled, perhaps in buffer. */
static const char *error_of(const struct instance *i, char *buffer, size_t size)
{
	const char *obstacle = instance_obstacle_text(i);

	if (obstacle[0] != '\0')
		return obstacle;
	if (i->wish == INSTANCE_WISH_DETACHED)
		return "detached";
	if (instance_budget_text(i) != NULL)
		return instance_budget_text(i);
	return i->released_until_ns != 0 ? release_text(i, buffer, size) : i->last_error;
}

static void put_totals(FILE *out, const struct modules *modules, const struct instance *i)
{
	const bool runs = i->run != NULL && run_is_open(i->run) && !i->run->is_for_recordings;
	struct run_totals f;
	char text[64];

	totals_of_instance(&modules->targets, i, &f);
	fprintf(out, "\"profiler_id\": ");
	put_string_or_null(out, runs ? i->run->profile.profiler_id : "");
	fprintf(out,
		", \"threads\": %llu, \"samples_taken\": %llu, \"missed\": "
		"%llu, \"pause_us_p99\": %.1f, \"chunks_sent\": %llu, "
		"\"bytes_sent\": %llu, \"last_error\": ",
		(unsigned long long)threads_of(modules, i), (unsigned long long)totals_taken(&f),
		(unsigned long long)totals_missed(&f),
		(double)counters_pause_percentile(&f.capture, 0.99) / 1e3,
		(unsigned long long)(i->config.dsn[0] != '\0' ? f.chunks.sent : f.chunks.written),
		(unsigned long long)f.payload_bytes);
	put_string_or_null(out, error_of(i, text, sizeof(text)));
	if (i->asker.is_set && (instance_was_added(i) || i->wish == INSTANCE_WISH_ATTACHED))
		fprintf(out, ", \"attached_by\": %u", i->asker.uid);
	else
		fprintf(out, ", \"attached_by\": null");
}

static void put_target(FILE *out, const struct modules *modules, const struct instance *i,
		       const struct peer *peer)
{
	const bool sees = instance_is_seen_by(i, peer);

	fprintf(out, "{\"name\": ");
	put_string(out, i->config.name);
	fprintf(out,
		", \"pid\": %d, \"state\": \"%s\", \"session_sampled\": %s, "
		"\"lifecycle\": \"%s\", \"on_crash\": \"%s\", \"leak_check\": \"%s\", "
		"\"rate_hz\": %u, ",
		i->pid, state_name(lifecycle_state(i)), i->is_sampled ? "true" : "false",
		i->config.lifecycle == LIFECYCLE_TRACE ? "trace" : "manual",
		i->config.on_crash == ON_CRASH_STAY ? "stay" : "leave",
		i->config.leak_check == LEAK_CHECK_ATTACH ? "attach" : "leave",
		/*
		 * A peer who may not see the target's statistics gets the configured rate: the
		 * present one, set by the governor, would show what the process does.
		 */
		sees && i->run != NULL ? i->run->rate_hz : i->config.rate_hz);
	if (sees)
		put_totals(out, modules, i);
	else
		fprintf(out, "\"profiler_id\": null, \"threads\": null, "
			     "\"samples_taken\": null, \"missed\": null, "
			     "\"pause_us_p99\": null, \"chunks_sent\": null, "
			     "\"bytes_sent\": null, \"last_error\": null, \"attached_by\": null");
	fprintf(out, "}");
}

/* Writes which rates the CPU budget has lowered. */
static void put_lowered(FILE *out, struct modules *modules)
{
	struct governor_lowered l;

	governor_count_lowered(&modules->targets, &l);
	fprintf(out,
		", \"lowered\": {\"targets\": %u, \"least_hz\": %u, "
		"\"most_hz\": %u, \"not_sampled\": %u}",
		l.lowered, l.least_hz, l.most_hz, l.withheld);
}

static double limited_s(const struct modules *modules)
{
	const uint64_t now_ns = clock_boot_ns();
	struct server_limit_sum sum;

	server_limit_sum(&modules->children, &sum);
	return sum.until_ns <= now_ns ? 0 : (double)(sum.until_ns - now_ns) / 1e9;
}

/* Writes the quarantined files: those of all users, or only those of the peer's own user. */
static void put_quarantined(FILE *out, const struct modules *modules, const struct peer *peer)
{
	const struct quarantine_file *f = NULL;
	bool first = true;

	fprintf(out, ", \"files_left_out\": [");
	while ((f = quarantine_next(&modules->quarantine, f)) != NULL) {
		if (!peer->sees_all && (f->owner.kind != OWNER_PLAIN || peer->uid != f->owner.uid))
			continue;
		fprintf(out, "%s{\"file\": ", first ? "" : ", ");
		put_string(out, f->file.name);
		fprintf(out, ", \"uid\": %u, \"deaths\": %u}", f->owner.uid, f->deaths);
		first = false;
	}
	fprintf(out, "]");
}

static void put_restarts(FILE *out, const struct modules *modules)
{
	fprintf(out, "\"restarts\": {");
	for (size_t of = 0; of < CHILD_KIND_N; of++) {
		fprintf(out, "%s\"%s\": {", of == 0 ? "" : ", ", child_types[of].label);
		for (size_t r = 0; r < RESTART_REASON_N; r++)
			fprintf(out, "%s\"%s\": %llu", r == 0 ? "" : ", ",
				reap_reason_name((enum restart_reason)r),
				(unsigned long long)modules->children.restarts.n[of][r]);
		fprintf(out, "}");
	}
	fprintf(out, "}");
}

static void put_refusal(FILE *out, const struct msg_denied *m)
{
	if (m == NULL) {
		fprintf(out, "null");
		return;
	}
	fprintf(out, "{\"status\": %u, \"detail\": ", m->status);
	put_string_or_null(out, m->text);
	fprintf(out, "}");
}

static void put_servers(FILE *out, const struct modules *modules)
{
	struct limited_server servers[SHIPS_MAX];
	const size_t n = server_limit_servers(&modules->children, servers);

	fprintf(out, "\"servers\": [");
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "%s{\"server\": ", i == 0 ? "" : ", ");
		put_string(out, servers[i].name);
		fprintf(out, ", \"refusal\": ");
		put_refusal(out, servers[i].denial);
		fprintf(out,
			", \"rate_limited_s\": %.1f, \"clock_ahead_s\": %lld, "
			"\"delivered_s\": ",
			(double)servers[i].limited_ns / 1e9, (long long)servers[i].clock_ahead_s);
		if (servers[i].delivered_ns == 0)
			fprintf(out, "null}");
		else
			fprintf(out, "%.1f}",
				(double)(clock_mono_ns() - servers[i].delivered_ns) / 1e9);
	}
	fprintf(out, "]");
}

/* Writes the sections. empty_since is null if the section has a process. */
static void put_sections(FILE *out, const struct modules *modules)
{
	const struct sections *s =
		modules->discovery == NULL ? NULL : discovery_sections(modules->discovery);
	const uint64_t now_ns = clock_mono_ns();

	fprintf(out, "\"sections\": [");
	for (size_t k = 0; s != NULL && k < s->n; k++) {
		const struct section *section = &s->v[k];

		fprintf(out, "%s{\"name\": ", k == 0 ? "" : ", ");
		put_string(out, section->name);
		fprintf(out, ", \"instances\": %u, \"empty_s\": ", section->instances);
		if (section->empty_since_ns == 0)
			fprintf(out, "null");
		else
			fprintf(out, "%.1f", (double)(now_ns - section->empty_since_ns) / 1e9);
		fprintf(out, ", \"off\": %s, \"defect\": ", section->is_off ? "true" : "false");
		put_string_or_null(out, section->defect);
		fprintf(out, "}");
	}
	fprintf(out, "]");
}

/* Writes the degraded states, the gravest first. */
static void put_degraded(FILE *out, const struct modules *modules)
{
	const struct degraded *d = &modules->state.degraded;
	const uint64_t now_ns = clock_mono_ns();
	bool first = true;

	fprintf(out, "\"degraded\": [");
	for (enum degraded_kind k = degraded_next(d, 0); k < DEGRADED_N;
	     k = degraded_next(d, k + 1)) {
		fprintf(out,
			"%s{\"kind\": \"%s\", \"what\": \"%s\", \"since_s\": %.1f, \"reason\": ",
			first ? "" : ", ", degraded_kind_texts[k].id, degraded_kind_texts[k].name,
			(double)(now_ns - d->v[k].since_ns) / 1e9);
		put_string_or_null(out, d->v[k].reason);
		fprintf(out, ", \"effect\": ");
		put_string(out, degraded_kind_texts[k].effect);
		fprintf(out, ", \"remedy\": ");
		put_string(out, degraded_kind_texts[k].remedy);
		fprintf(out, ", \"breaks_promise\": %s}",
			degraded_kind_texts[k].breaks_promise ? "true" : "false");
		first = false;
	}
	fprintf(out, "], ");
}

/* Writes what only peers with sees_all get. */
static void put_inside(FILE *out, const struct modules *modules)
{
	char path[OPTIONS_PATH_SIZE];
	capability_set permitted;

	fprintf(out, ", \"config\": ");
	options_config_path(&modules->state.options, path);
	put_string_or_null(out, path);
	fprintf(out, ",");
	stats_put_capture(out, modules, " ");
	fprintf(out, " \"capabilities\": ");
	if (privileges_permitted(&permitted) == 0)
		fprintf(out, "\"%016llx\"", (unsigned long long)permitted);
	else
		fprintf(out, "null");
	fprintf(out, ", ");
	put_degraded(out, modules);
	put_servers(out, modules);
	fprintf(out, ", ");
	put_sections(out, modules);
	fprintf(out, ", ");
	put_restarts(out, modules);
}

static void put_daemon(FILE *out, struct modules *modules, const struct peer *peer)
{
	struct spool_counts spool;
	size_t profiling = 0;

	FOR_EACH_RUN (run, &modules->targets)
		profiling += run->phase == RUN_PROFILED;
	ship_sum_spool(&modules->children, &spool);
	fprintf(out,
		"\"daemon\": {\"version\": \"%s\", \"pid\": %d, "
		"\"capture_pid\": %d, \"uptime_s\": %.3f, \"profiling\": %zu, "
		"\"sampler\": \"%s\", \"cpu_budget_percent\": %u, \"rate_limited_s\": %.1f, "
		"\"spool\": {\"waiting\": %llu, \"bytes\": %llu}",
		SENTRY_PROFD_VERSION, getpid(), modules->children.capture.pid,
		(double)(clock_mono_ns() - modules->state.epoch_ns) / 1e9, profiling,
		targets_trace(&modules->targets) ? "ptrace" : "perf",
		modules->state.options.config.cpu_budget, limited_s(modules),
		(unsigned long long)spool.count, (unsigned long long)spool.bytes);
	put_lowered(out, modules);
	put_quarantined(out, modules, peer);
	if (peer->sees_all)
		put_inside(out, modules);
	else
		fprintf(out, ", \"config\": null, \"scheduler\": null, "
			     "\"cpu_quota_percent\": null, \"polls\": null, "
			     "\"capabilities\": null, \"degraded\": null, "
			     "\"servers\": null, \"sections\": null, "
			     "\"restarts\": null");
	fprintf(out, "}");
}

static void put_all(FILE *out, struct modules *modules, const struct peer *peer)
{
	bool first = true;

	fprintf(out, "{");
	put_daemon(out, modules, peer);
	fprintf(out, ", \"targets\": [");
	for (size_t k = 0; k < modules->targets.n_instances; k++) {
		const struct instance *i = modules->targets.instances[k];

		if (instance_is_gone(i))
			continue;
		fprintf(out, "%s\n  ", first ? "" : ",");
		put_target(out, modules, i, peer);
		first = false;
	}
	fprintf(out, "%s]}\n", first ? "" : "\n");
}

int status_make(struct modules *modules, const struct peer *peer, int *ret_fd, uint32_t *ret_size)
{
	struct sealed s;
	uint64_t size;
	int r = sealed_open(&s, "status");

	if (r < 0)
		return r;
	put_all(s.out, modules, peer);
	r = sealed_close(&s, 0, ret_fd, &size);
	if (r == 0)
		*ret_size = (uint32_t)size;
	return r;
}
