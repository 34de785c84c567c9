#include "daemon/broker/report/metrics.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/children/reap.h"
#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/children/ship.h"
#include "daemon/broker/report/modules.h"
#include "daemon/broker/targets/sections.h"
#include "daemon/broker/targets/self_usage.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/common/resource_shortage.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_ship.h"
#include "lib/base/clock.h"
#include "lib/base/procfs.h"
#include "lib/base/sealed.h"
#include "lib/base/small_file.h"
#include "lib/unwind/unwind.h"
#include "proto/profile.h"

struct string_pool {
	FILE *out; /* sealed_close() reports its errors */
	bool is_openmetrics;
};

enum kind { GAUGE, COUNTER, HISTOGRAM, INFO };

/*
 * Writes the head of a metric family. unit: NULL, or the suffix of the name. In OpenMetrics a
 * family has the name of its samples without a suffix; in Prometheus' format it has the whole
 * name.
 */
static void family(const struct string_pool *t, const char *name, enum kind kind, const char *unit,
		   const char *help)
{
	static const struct {
		const char *open, *plain, *suffix;
	} kinds[] = {
		[GAUGE] = {"gauge", "gauge", ""},
		[COUNTER] = {"counter", "counter", "_total"},
		[HISTOGRAM] = {"histogram", "histogram", ""},
		[INFO] = {"info", "gauge", "_info"},
	};
	const char *suffix = t->is_openmetrics ? "" : kinds[kind].suffix;

	fprintf(t->out, "# TYPE sentry_profd_%s%s %s\n", name, suffix,
		t->is_openmetrics ? kinds[kind].open : kinds[kind].plain);
	if (unit != NULL && t->is_openmetrics)
		fprintf(t->out, "# UNIT sentry_profd_%s %s\n", name, unit);
	fprintf(t->out, "# HELP sentry_profd_%s%s %s\n", name, suffix, help);
}

static void labeled(const struct string_pool *t, const char *name, const char *label,
		    const char *value, uint64_t n)
{
	fprintf(t->out, "sentry_profd_%s{%s=\"%s\"} %llu\n", name, label, value,
		(unsigned long long)n);
}

static void labeled_seconds(const struct string_pool *t, const char *name, const char *label,
			    const char *value, uint64_t ns)
{
	fprintf(t->out, "sentry_profd_%s{%s=\"%s\"} %.3f\n", name, label, value, (double)ns / 1e9);
}

static void plain(const struct string_pool *t, const char *name, uint64_t n)
{
	fprintf(t->out, "sentry_profd_%s %llu\n", name, (unsigned long long)n);
}

static void put_processes(const struct string_pool *t, struct modules *modules)
{
	uint64_t profiled = 0, others = 0;

	/* A process that has ended may still have chunks to send. */
	for (size_t k = 0; k < modules->targets.n_instances; k++) {
		const struct instance *i = modules->targets.instances[k];

		profiled += i->run != NULL;
		others += i->run == NULL && !instance_is_gone(i);
	}
	family(t, "build", INFO, NULL, "Version of the running sentry-profd.");
	fprintf(t->out, "sentry_profd_build_info{version=\"%s\"} 1\n", SENTRY_PROFD_VERSION);
	family(t, "processes", GAUGE, NULL,
	       "Processes that a section of the configuration matches or a user has named.");
	labeled(t, "processes", "state", "profiled", profiled);
	labeled(t, "processes", "state", "not_profiled", others);
}

/* The reasons why processes are not profiled although a section or a user wants it. */
static void put_left_out(const struct string_pool *t, const struct modules *modules)
{
	uint64_t limit = 0, budget = 0, rights = 0, leak_check = 0, other = 0;

	for (size_t k = 0; k < modules->targets.n_instances; k++) {
		const struct instance *i = modules->targets.instances[k];

		if (instance_is_gone(i))
			continue;
		limit += i->obstacle == INSTANCE_LIMIT_REACHED;
		budget += i->obstacle == INSTANCE_OVER_BUDGET;
		rights += i->obstacle == INSTANCE_RIGHTS_CHANGE;
		leak_check += i->obstacle == INSTANCE_LEFT_OUT && i->has_leak_check;
		other += i->obstacle == INSTANCE_LEFT_OUT && !i->has_leak_check;
	}
	family(t, "processes_left_out", GAUGE, NULL,
	       "Processes that are to be profiled and are not, by reason.");
	labeled(t, "processes_left_out", "reason", "limit", limit);
	labeled(t, "processes_left_out", "reason", "budget", budget);
	labeled(t, "processes_left_out", "reason", "rights", rights);
	labeled(t, "processes_left_out", "reason", "leak_check", leak_check);
	labeled(t, "processes_left_out", "reason", "other", other);
}

/* Writes a sample of a section. Names of sections need no escapes in a label. */
static void of_section(const struct string_pool *t, const char *name, const struct section *section,
		       const char *label, const char *value, uint64_t n)
{
	fprintf(t->out, "sentry_profd_%s{section=\"%s\",%s=\"%s\"} %llu\n", name, section->name,
		label, value, (unsigned long long)n);
}

static void put_sections(const struct string_pool *t, const struct modules *modules)
{
	const struct sections *s = discovery_sections(modules->discovery);
	struct run_totals f;

	family(t, "section_processes", GAUGE, NULL,
	       "Processes that a section of the configuration matches.");
	for (size_t k = 0; k < s->n; k++) {
		const struct section *section = &s->v[k];

		of_section(t, "section_processes", section, "state", "profiled", section->profiled);
		of_section(t, "section_processes", section, "state", "not_profiled",
			   section->instances - section->profiled);
	}
	family(t, "section_samples", COUNTER, NULL,
	       "Samples of the processes that a section matches, by outcome.");
	for (size_t k = 0; k < s->n; k++) {
		sections_totals(&s->v[k], &modules->targets, &f);
		of_section(t, "section_samples_total", &s->v[k], "outcome", "taken",
			   totals_taken(&f));
		of_section(t, "section_samples_total", &s->v[k], "outcome", "missed",
			   totals_missed(&f));
	}
	family(t, "section_chunks", COUNTER, NULL,
	       "Chunks of the processes that a section matches, by outcome.");
	for (size_t k = 0; k < s->n; k++) {
		const struct chunk_counts *c = &f.chunks;

		sections_totals(&s->v[k], &modules->targets, &f);
		of_section(t, "section_chunks_total", &s->v[k], "outcome", "sent", c->sent);
		of_section(t, "section_chunks_total", &s->v[k], "outcome", "written", c->written);
		of_section(t, "section_chunks_total", &s->v[k], "outcome", "spooled", c->spooled);
		of_section(t, "section_chunks_total", &s->v[k], "outcome", "discarded",
			   totals_discarded(&f));
	}
}

static void put_samples(const struct string_pool *t, const struct run_totals *f)
{
	const struct capture_counters *c = &f->capture;

	family(t, "samples_expected", COUNTER, NULL, "Samples expected: one per thread and tick.");
	plain(t, "samples_expected_total", c->expected);
	family(t, "samples", COUNTER, NULL, "Samples taken, by kind.");
	labeled(t, "samples_total", "kind", "captured", c->captured);
	labeled(t, "samples_total", "kind", "repeated", c->repeated);
	labeled(t, "samples_total", "kind", "filled", c->filled);
	family(t, "missed", COUNTER, NULL, "Samples missed, by reason.");
	for (size_t i = 0; i < MISSED_N; i++)
		labeled(t, "missed_total", "reason", missed_reason_name((enum missed_reason)i),
			c->missed[i]);
	labeled(t, "missed_total", "reason", "no_capture", f->missed_no_capture);
}

static void put_times(const struct string_pool *t, const struct capture_counters *c)
{
	family(t, "thread_seconds", COUNTER, "seconds",
	       "Time of threads in samples, by state. The rest of the samples are waiting.");
	labeled_seconds(t, "thread_seconds_total", "state", "running", c->running_ns);
	labeled_seconds(t, "thread_seconds_total", "state", "ready", c->ready_ns);
	family(t, "compared_seconds", COUNTER, "seconds",
	       "Running time of profiles, and what the kernel counts in the same time.");
	labeled_seconds(t, "compared_seconds_total", "by", "profile", c->compared_running_ns);
	labeled_seconds(t, "compared_seconds_total", "by", "kernel", c->compared_cpu_ns);
}

static void put_crashes(const struct string_pool *t, const struct run_totals *f)
{
	family(t, "crashes", COUNTER, NULL, "Crashes of profiled processes with a handler.");
	labeled(t, "crashes_total", "outcome", "left", f->crashes_left);
	labeled(t, "crashes_total", "outcome", "traced", f->crashes_traced);
}

static void put_rights(const struct string_pool *t, const struct run_totals *f)
{
	family(t, "rights_changes", COUNTER, NULL, "Changes of the rights of processes.");
	plain(t, "rights_changes_total", f->rights_changes);
	family(t, "rights_unsampled_seconds", COUNTER, "seconds",
	       "Time without samples between two runs, because rights had changed.");
	fprintf(t->out, "sentry_profd_rights_unsampled_seconds_total %.3f\n",
		(double)f->rights_unsampled_ns / 1e9);
}

/* One bucket per octave. --stats has percentiles and rates. */
static void put_pauses(const struct string_pool *t, const struct capture_counters *c)
{
	uint64_t sum = 0;
	double end = 512e-9; /* the end of bucket 7, the last one of the first octave */

	family(t, "pause_seconds", HISTOGRAM, "seconds",
	       "Time for which a thread was stopped for a sample.");
	for (size_t i = 0; i < PAUSE_BUCKETS; i++) {
		sum += c->pauses[i];
		if (i % 8 != 7)
			continue;
		/* The last bucket also has all longer pauses. */
		if (i != PAUSE_BUCKETS - 1)
			fprintf(t->out,
				"sentry_profd_pause_seconds_bucket"
				"{le=\"%.9f\"} %llu\n",
				end, (unsigned long long)sum);
		end *= 2;
	}
	fprintf(t->out, "sentry_profd_pause_seconds_bucket{le=\"+Inf\"} %llu\n",
		(unsigned long long)sum);
}

static void put_stacks(const struct string_pool *t, const struct run_totals *f)
{
	family(t, "stacks", COUNTER, NULL, "Stacks, by the reason why they end.");
	for (size_t e = 0; e < UNWIND_END_N; e++)
		labeled(t, "stacks_total", "end", unwind_end_name((enum unwind_end)e),
			f->unwind.ends[e]);
	labeled(t, "stacks_total", "end", "retaken", f->unwind.retaken);
}

static void put_chunks(const struct string_pool *t, const struct modules *modules,
		       const struct run_totals *f)
{
	const struct chunk_counts *c = &f->chunks;
	struct spool_counts spool;

	family(t, "chunks_made", COUNTER, NULL, "Chunks made.");
	plain(t, "chunks_made_total", c->made);
	family(t, "chunks", COUNTER, NULL, "Chunks, by outcome.");
	labeled(t, "chunks_total", "outcome", "sent", c->sent);
	labeled(t, "chunks_total", "outcome", "written", c->written);
	labeled(t, "chunks_total", "outcome", "spooled", c->spooled);
	labeled(t, "chunks_total", "outcome", "idle", c->idle);
	family(t, "chunks_discarded", COUNTER, NULL, "Chunks discarded, by reason.");
	/* Zeros, too: Prometheus' increase() does not see that a series begins with a loss. */
	for (uint32_t i = PROFILE_OK + 1; i < DISCARD_N; i++)
		if (i < PROFILE_FAULT_N || i > DISCARD_FAULTS_END)
			labeled(t, "chunks_discarded_total", "reason", discard_name(i),
				c->discarded[i]);
	family(t, "payload_bytes", COUNTER, "bytes", "Bytes of the chunks before compression.");
	plain(t, "payload_bytes_total", f->payload_bytes);
	ship_sum_spool(&modules->children, &spool);
	family(t, "spool_chunks", GAUGE, NULL, "Chunks in the spool, waiting for their server.");
	plain(t, "spool_chunks", spool.count);
	family(t, "spool_bytes", GAUGE, "bytes", "Bytes of the chunks in the spool.");
	plain(t, "spool_bytes", spool.bytes);
}

/* Returns the resident memory of a child process, in bytes; 0 if it has ended. */
static uint64_t resident_bytes(int32_t pid)
{
	unsigned long long pages;
	char text[64];

	if (pid == 0 ||
	    small_file_read(AT_FDCWD, procfs_path(pid, "statm").text, text, sizeof(text)) < 0 ||
	    sscanf(text, "%*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Adds a child's usage. rss_bytes is the present memory. */
static void add_child(struct usage *sum, const struct child *c)
{
	uint64_t ns = 0;

	sum->cpu_s += c->usage.cpu_s;
	if (c->pid != 0 && clock_process_ns(c->pid, &ns) == 0)
		sum->cpu_s += (double)ns / 1e9;
	sum->rss_bytes += resident_bytes(c->pid);
}

static void put_own(const struct string_pool *t, const struct modules *modules)
{
	static const char *const names[SELF_USAGE_N] = {
		[SELF_USAGE_BROKER] = "broker",
		[SELF_USAGE_CAPTURE] = "capture",
		[SELF_USAGE_UNWIND] = "unwind",
		[SELF_USAGE_SHIP] = "ship",
	};
	struct usage of[SELF_USAGE_N] = {
		[SELF_USAGE_UNWIND] = {.cpu_s = modules->children.unwinds_gone.cpu_s},
		[SELF_USAGE_SHIP] = {.cpu_s = modules->children.ships_gone.cpu_s},
	};

	of[SELF_USAGE_BROKER].cpu_s =
		(double)(clock_cpu_ns() + files_used_ns(modules->files)) / 1e9;
	of[SELF_USAGE_BROKER].rss_bytes = resident_bytes(getpid());
	add_child(&of[SELF_USAGE_CAPTURE], &modules->children.capture);
	for (size_t i = 0; i < modules->children.n_unwinds; i++)
		add_child(&of[SELF_USAGE_UNWIND], &modules->children.unwinds[i]->child);
	for (size_t i = 0; i < modules->children.n_ships; i++)
		add_child(&of[SELF_USAGE_SHIP], &modules->children.ships[i]->child);
	family(t, "cpu_seconds", COUNTER, "seconds", "CPU time of sentry-profd's own processes.");
	for (size_t i = 0; i < SELF_USAGE_N; i++)
		fprintf(t->out, "sentry_profd_cpu_seconds_total{process=\"%s\"} %.6f\n", names[i],
			of[i].cpu_s);
	family(t, "resident_bytes", GAUGE, "bytes",
	       "Resident memory of sentry-profd's own processes.");
	for (size_t i = 0; i < SELF_USAGE_N; i++)
		labeled(t, "resident_bytes", "process", names[i], of[i].rss_bytes);
}

static void put_degraded(const struct string_pool *t, const struct degraded *d)
{
	family(t, "degraded", GAUGE, NULL,
	       "1 while sentry-profd does not keep a promise, by the kind of the state.");
	for (size_t k = 0; k < DEGRADED_N; k++)
		labeled(t, "degraded", "kind", degraded_kind_texts[k].id, d->v[k].since_ns != 0);
}

static void put_restarts(const struct string_pool *t, const struct modules *modules)
{
	family(t, "restarts", COUNTER, NULL,
	       "Restarts of sentry-profd's own processes, by reason.");
	for (size_t of = 0; of < CHILD_KIND_N; of++)
		for (size_t r = 0; r < RESTART_REASON_N; r++)
			fprintf(t->out,
				"sentry_profd_restarts_total{process=\"%s\","
				"reason=\"%s\"} %llu\n",
				child_types[of].label, reap_reason_name((enum restart_reason)r),
				(unsigned long long)modules->children.restarts.n[of][r]);
}

static void of_server(const struct string_pool *t, const char *name, const struct limited_server *s,
		      uint64_t ns)
{
	labeled_seconds(t, name, "server", s->name, ns);
}

/* Writes the rate limits. Names of servers need no escapes in a label. */
static void put_limits(const struct string_pool *t, const struct modules *modules)
{
	struct limited_server servers[SHIPS_MAX];
	const size_t n = server_limit_servers(&modules->children, servers);

	family(t, "rate_limited_seconds", GAUGE, "seconds",
	       "Time for which a server still accepts no profiles (rate limit).");
	for (size_t i = 0; i < n; i++)
		of_server(t, "rate_limited_seconds", &servers[i], servers[i].limited_ns);
	family(t, "rate_limit_pauses", COUNTER, NULL,
	       "Pauses of sampling because of the rate limit of a server.");
	for (size_t i = 0; i < n; i++)
		labeled(t, "rate_limit_pauses_total", "server", servers[i].name,
			servers[i].sum.holds);
	family(t, "rate_limit_paused_seconds", COUNTER, "seconds",
	       "Total time of the pauses because of the rate limit of a server.");
	for (size_t i = 0; i < n; i++)
		of_server(t, "rate_limit_paused_seconds_total", &servers[i],
			  servers[i].sum.held_ns);
}

/* A server that has taken no chunk yet has no sample of the first metric. */
static void put_servers(const struct string_pool *t, const struct modules *modules)
{
	const uint64_t now_ns = clock_mono_ns();
	struct limited_server servers[SHIPS_MAX];
	const size_t n = server_limit_servers(&modules->children, servers);

	family(t, "delivery_age_seconds", GAUGE, "seconds",
	       "Time since a server last accepted a chunk.");
	for (size_t i = 0; i < n; i++)
		if (servers[i].delivered_ns != 0)
			of_server(t, "delivery_age_seconds", &servers[i],
				  now_ns - servers[i].delivered_ns);
	family(t, "server_clock_ahead_seconds", GAUGE, "seconds",
	       "Seconds by which the clock of a server is ahead of the clock of this host.");
	for (size_t i = 0; i < n; i++)
		fprintf(t->out,
			"sentry_profd_server_clock_ahead_seconds{server=\"%s\"}"
			" "
			"%lld\n",
			servers[i].name, (long long)servers[i].clock_ahead_s);
}

/* Sums the statistics of the processes that the peer may see. */
static void sum_seen(const struct modules *modules, const struct peer *peer, struct run_totals *ret)
{
	struct run_totals one;

	if (peer->sees_all) {
		totals_of_all(&modules->targets, ret);
		return;
	}
	*ret = (struct run_totals){0};
	for (size_t i = 0; i < modules->targets.n_instances; i++) {
		if (!instance_is_seen_by(modules->targets.instances[i], peer))
			continue;
		totals_of_instance(&modules->targets, modules->targets.instances[i], &one);
		totals_add(ret, &one);
	}
}

/* Metrics of the whole daemon, for peers with sees_all (as put_inside() of status.c). */
static void put_inside(const struct string_pool *t, struct modules *modules)
{
	if (modules->discovery != NULL)
		put_sections(t, modules);
	put_degraded(t, &modules->state.degraded);
	family(t, "files_left_out", GAUGE, NULL,
	       "Files that are no longer read because sentry-profd-unwind died at them.");
	plain(t, "files_left_out", quarantine_count_files(&modules->quarantine));
	family(t, "resource_shortages", COUNTER, NULL,
	       "Times that sentry-profd waited for descriptors, processes or memory.");
	plain(t, "resource_shortages_total", resource_shortage_count());
	family(t, "files_refused", COUNTER, NULL,
	       "Requests of sentry-profd-unwind for a file by an invalid name or range.");
	plain(t, "files_refused_total", modules->quarantine.refused);
	family(t, "files_other_owner", COUNTER, NULL,
	       "Files that were not opened because the rights of their process had changed.");
	plain(t, "files_other_owner_total", files_other_owner(modules->files));
	put_own(t, modules);
	put_restarts(t, modules);
	put_limits(t, modules);
	put_servers(t, modules);
}

int metrics_make(struct modules *modules, const struct peer *peer, bool is_openmetrics, int *ret_fd,
		 uint32_t *ret_size)
{
	struct string_pool t = {.is_openmetrics = is_openmetrics};
	struct run_totals f;
	struct sealed s;
	uint64_t size;
	int r = sealed_open(&s, "metrics");

	if (r < 0)
		return r;
	t.out = s.out;
	sum_seen(modules, peer, &f);
	put_processes(&t, modules);
	put_left_out(&t, modules);
	put_samples(&t, &f);
	put_times(&t, &f.capture);
	put_crashes(&t, &f);
	put_rights(&t, &f);
	put_pauses(&t, &f.capture);
	put_stacks(&t, &f);
	put_chunks(&t, modules, &f);
	if (peer->sees_all)
		put_inside(&t, modules);
	if (is_openmetrics)
		fprintf(t.out, "# EOF\n");
	r = sealed_close(&s, 0, ret_fd, &size);
	if (r == 0)
		*ret_size = (uint32_t)size;
	return r;
}
