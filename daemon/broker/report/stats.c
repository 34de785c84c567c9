#include "daemon/broker/report/stats.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/children/ship.h"
#include "daemon/broker/report/modules.h"
#include "daemon/broker/report/times.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/self_usage.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/common/resource_shortage.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_ship.h"
#include "lib/base/clock.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

/* Writes "name": n, with a comma before all but the first. */
static void put_count(FILE *out, bool *first, const char *name, uint64_t n)
{
	fprintf(out, "%s\"%s\": %llu", *first ? "" : ", ", name, (unsigned long long)n);
	*first = false;
}

static void put_missed(FILE *out, const struct run_totals *f)
{
	bool first = true;

	fprintf(out, "  \"missed\": {");
	for (size_t i = 0; i < MISSED_N; i++)
		if (f->capture.missed[i] != 0)
			put_count(out, &first, missed_reason_name((enum missed_reason)i),
				  f->capture.missed[i]);
	if (f->missed_no_capture != 0)
		put_count(out, &first, "no_capture", f->missed_no_capture);
	fprintf(out, "},\n");
}

static void put_unwind(FILE *out, const struct run_totals *f)
{
	bool first = true;

	fprintf(out,
		"  \"unwind\": {\"complete\": %llu, \"truncated\": %llu, "
		"\"failed\": {",
		(unsigned long long)f->unwind.ends[UNWIND_END_ROOT],
		(unsigned long long)(f->unwind.ends[UNWIND_END_CAPPED] +
				     f->unwind.ends[UNWIND_END_MAX_FRAMES]));
	for (size_t e = 0; e < UNWIND_END_N; e++)
		if (e != UNWIND_END_ROOT && e != UNWIND_END_CAPPED && e != UNWIND_END_MAX_FRAMES &&
		    f->unwind.ends[e] != 0)
			put_count(out, &first, unwind_end_name((enum unwind_end)e),
				  f->unwind.ends[e]);
	fprintf(out,
		"}, \"retaken\": %llu, \"frame_pointer\": %llu, \"without_lines\": %llu, "
		"\"far_code\": %llu, \"unknown_releases\": %llu},\n",
		(unsigned long long)f->unwind.retaken, (unsigned long long)f->unwind.by_heuristics,
		(unsigned long long)f->unwind.without_lines, (unsigned long long)f->unwind.far_code,
		(unsigned long long)f->unwind.unknown_releases);
}

static void put_governor(FILE *out, const struct modules *modules, const struct run_totals *f,
			 uint32_t rate_hz)
{
	fprintf(out,
		"  \"governor\": {\"cpu_budget_percent\": %u, "
		"\"lowest_rate_hz\": %u, \"lowered_s\": %.1f, "
		"\"exceeded_s\": %.1f, \"delayed_processes\": %llu},\n",
		modules->state.options.config.cpu_budget, totals_lowest_hz(f, rate_hz),
		(double)f->lowered_ns / 1e9, (double)f->exceeded_ns / 1e9,
		(unsigned long long)modules->governor.admission.delayed);
}

static void put_discarded(FILE *out, const struct chunk_counts *chunks)
{
	bool first = true;

	for (uint32_t i = 0; i < DISCARD_N; i++)
		if (chunks->discarded[i] != 0)
			put_count(out, &first, discard_name(i), chunks->discarded[i]);
}

static void put_chunks(FILE *out, const struct run_totals *f)
{
	fprintf(out,
		"  \"chunks\": {\"made\": %llu, \"written\": %llu, "
		"\"unwritten\": %llu, \"sent\": %llu, \"spooled\": %llu, "
		"\"idle\": %llu, \"discarded\": {",
		(unsigned long long)f->chunks.made, (unsigned long long)f->chunks.written,
		(unsigned long long)f->chunks.not_written, (unsigned long long)f->chunks.sent,
		(unsigned long long)f->chunks.spooled, (unsigned long long)f->chunks.idle);
	put_discarded(out, &f->chunks);
	fprintf(out, "}}");
}

/* Writes the part that each process and their sum have. */
static void put_totals(FILE *out, const struct modules *modules, const struct run_totals *f,
		       uint32_t rate_hz)
{
	const struct capture_counters *c = &f->capture;
	uint64_t end = modules->state.ended_ns != 0 ? modules->state.ended_ns
						    : state_now_ns(&modules->state);
	double duration = modules->state.started_ns == 0
				  ? 0.0
				  : (double)(end - modules->state.started_ns) / 1e9;

	fprintf(out,
		"  \"ticks\": %llu, \"rate_hz\": %u, \"duration_s\": %.3f,\n"
		"  \"samples_expected\": %llu, \"samples_taken\": %llu,\n"
		"  \"captured\": %llu, \"repeated\": %llu, \"filled\": %llu,\n"
		"  \"stack_bytes\": %llu,\n",
		(unsigned long long)c->ticks, rate_hz, duration, (unsigned long long)c->expected,
		(unsigned long long)totals_taken(f), (unsigned long long)c->captured,
		(unsigned long long)c->repeated, (unsigned long long)c->filled,
		(unsigned long long)c->stack_bytes);
	put_missed(out, f);
	fprintf(out,
		"  \"stops\": %llu, \"event_stops\": %llu, \"rewritten\": "
		"%llu, \"continued\": %llu,\n"
		"  \"unrepaired\": %llu,\n"
		"  \"stop_us\": {\"p50\": %.1f, \"p99\": %.1f, \"max\": "
		"%.1f},\n",
		(unsigned long long)c->stops, (unsigned long long)c->event_stops,
		(unsigned long long)c->rewritten, (unsigned long long)c->continued,
		(unsigned long long)c->unrepaired, (double)counters_pause_percentile(c, 0.50) / 1e3,
		(double)counters_pause_percentile(c, 0.99) / 1e3, (double)c->pause_max_ns / 1e3);
	fprintf(out,
		"  \"crashes\": {\"left\": %llu, \"traced\": %llu},\n"
		"  \"rights_changes\": %llu, \"rights_unsampled_s\": %.1f,\n",
		(unsigned long long)f->crashes_left, (unsigned long long)f->crashes_traced,
		(unsigned long long)f->rights_changes, (double)f->rights_unsampled_ns / 1e9);
	fprintf(out,
		"  \"times\": {\"running_s\": %.3f, \"ready_s\": %.3f, "
		"\"compared\": {\"running_s\": %.3f, \"kernel_s\": %.3f, "
		"\"differ\": %s}, \"without_schedstat\": %llu},\n",
		(double)c->running_ns / 1e9, (double)c->ready_ns / 1e9,
		(double)c->compared_running_ns / 1e9, (double)c->compared_cpu_ns / 1e9,
		times_differ(c, totals_lowest_hz(f, rate_hz)) ? "true" : "false",
		(unsigned long long)c->without_schedstat);
	put_governor(out, modules, f, rate_hz);
	put_unwind(out, f);
	put_chunks(out, f);
}

/* Returns the broker's usage, including its helpers that open files. */
static struct usage own_usage(const struct modules *modules)
{
	struct rusage r;

	(void)getrusage(RUSAGE_SELF, &r);
	return (struct usage){
		.cpu_s = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
			 (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6 +
			 (double)files_used_ns(modules->files) / 1e9,
		.rss_bytes = (uint64_t)r.ru_maxrss * 1024,
	};
}

static void put_usage(FILE *out, const struct usage of[SELF_USAGE_N])
{
	fprintf(out,
		"  \"cpu_seconds\": {\"broker\": %.6f, \"capture\": %.6f, "
		"\"unwind\": %.6f, \"ship\": %.6f},\n"
		"  \"rss_peak_bytes\": {\"broker\": %llu, \"capture\": %llu, "
		"\"unwind\": %llu, \"ship\": %llu},\n",
		of[SELF_USAGE_BROKER].cpu_s, of[SELF_USAGE_CAPTURE].cpu_s,
		of[SELF_USAGE_UNWIND].cpu_s, of[SELF_USAGE_SHIP].cpu_s,
		(unsigned long long)of[SELF_USAGE_BROKER].rss_bytes,
		(unsigned long long)of[SELF_USAGE_CAPTURE].rss_bytes,
		(unsigned long long)of[SELF_USAGE_UNWIND].rss_bytes,
		(unsigned long long)of[SELF_USAGE_SHIP].rss_bytes);
}

/*
 * The spool's counters are of all processes together: the process that puts a chunk into the
 * spool is rarely the one that sends it.
 */
static void put_spool(FILE *out, const struct modules *modules)
{
	struct spool_counts s;

	ship_sum_spool(&modules->children, &s);
	fprintf(out,
		"  \"spool\": {\"waiting\": %llu, \"bytes\": %llu, "
		"\"sent\": %llu, \"send_error\": %llu, "
		"\"ratelimit_backoff\": %llu, \"cache_overflow\": %llu, "
		"\"expired\": %llu, \"set_aside\": %llu},\n",
		(unsigned long long)s.count, (unsigned long long)s.bytes,
		(unsigned long long)s.sent, (unsigned long long)s.refused,
		(unsigned long long)s.rate_limited, (unsigned long long)s.overflow,
		(unsigned long long)s.expired, (unsigned long long)s.set_aside);
}

static void put_spotlight(FILE *out, const struct modules *modules)
{
	if (modules->children.spotlight == NULL)
		return;
	fprintf(out, "  \"spotlight\": {\"sent\": %llu, \"discarded\": {",
		(unsigned long long)modules->delivery.spotlight.sent);
	put_discarded(out, &modules->delivery.spotlight);
	fprintf(out, "}},\n");
}

static void put_limit(FILE *out, const struct modules *modules)
{
	struct server_limit_sum sum;

	server_limit_sum(&modules->children, &sum);
	fprintf(out, "  \"rate_limit\": {\"pauses\": %llu, \"paused_s\": %.3f},\n",
		(unsigned long long)sum.holds, (double)sum.held_ns / 1e9);
}

static const char *scheduler_name(const struct heartbeat *heartbeat)
{
	switch ((enum heartbeat_scheduler)heartbeat->scheduler) {
	case SCHEDULER_FIFO:
		return "fifo";
	case SCHEDULER_NICE:
		return "nice";
	case SCHEDULER_NORMAL:
	case SCHEDULER_UNSET:
		break;
	}
	return "normal";
}

void stats_put_capture(FILE *out, const struct modules *modules, const char *space)
{
	static const struct heartbeat none;
	const struct heartbeat *heartbeat =
		modules->children.heartbeat == NULL ? &none : modules->children.heartbeat;

	fprintf(out, "%s\"scheduler\": \"%s\",", space, scheduler_name(heartbeat));
	fprintf(out, "%s\"cpu_quota_percent\": %u,", space, heartbeat->cpu_quota);
	fprintf(out, "%s\"polls\": {\"useful\": %llu, \"useless\": %llu},", space,
		(unsigned long long)heartbeat->polls.useful,
		(unsigned long long)heartbeat->polls.useless);
}

int stats_write(const struct modules *modules, int fd)
{
	FILE *out = fdopen(fd, "w");
	const struct usage own = own_usage(modules);
	struct usage usage[SELF_USAGE_N];
	struct run_totals one;
	int r;

	if (out == NULL) {
		r = -errno;
		close_fd(&fd);
		return r;
	}
	fprintf(out, "{");
	stats_put_capture(out, modules, "\n  ");
	fprintf(out, "\n");
	self_usage_of_all(&modules->targets, own, usage);
	put_usage(out, usage);
	put_spool(out, modules);
	put_limit(out, modules);
	put_spotlight(out, modules);
	fprintf(out, "  \"files_left_out\": %zu,\n  \"files_refused\": %llu,\n",
		quarantine_count_files(&modules->quarantine),
		(unsigned long long)modules->quarantine.refused);
	fprintf(out, "  \"files_other_owner\": %llu,\n",
		(unsigned long long)files_other_owner(modules->files));
	fprintf(out, "  \"resource_shortages\": %llu,\n",
		(unsigned long long)resource_shortage_count());
	totals_of_all(&modules->targets, &one);
	put_totals(out, modules, &one, modules->state.options.config.rate_hz);
	fprintf(out, ",\n  \"targets\": [");
	for (size_t i = 0; i < modules->targets.n_instances; i++) {
		const struct instance *instance = modules->targets.instances[i];

		totals_of_instance(&modules->targets, instance, &one);
		fprintf(out, "%s{\n  \"pid\": %d,\n", i == 0 ? "" : ", ", instance->pid);
		self_usage_of_instance(&modules->targets, own, instance, usage);
		put_usage(out, usage);
		put_totals(out, modules, &one, instance->config.rate_hz);
		fprintf(out, "}");
	}
	fprintf(out, "]\n}\n");
	r = flush_stream(out);
	if (fclose(out) != 0 && r == 0)
		r = -errno;
	return r;
}
