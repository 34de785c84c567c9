#include "proto/profile_v1.h"

#include <string.h>

#include "proto/debug_meta.h"
#include "proto/envelope.h"
#include "proto/json_out.h"
#include "proto/profile_json.h"
#include "proto/transaction.h"

static const struct profile_thread *active(const struct profile_v1 *v)
{
	return &v->profile->threads[profile_find_thread(v->profile, v->tid)];
}

/* Returns the end of the transaction, cut to the longest profile as samples are. */
static uint64_t end_us(const struct profile *p)
{
	const uint64_t start = p->samples[0].time_us;
	const uint64_t end = p->samples[p->n_samples - 1].time_us;

	return end - start < PROFILE_JSON_ELAPSED_MAX_US ? end
							 : start + PROFILE_JSON_ELAPSED_MAX_US;
}

int profile_v1_transaction(const struct profile_v1 *v, FILE *out)
{
	struct transaction t = {
		.profile = v->profile,
		.name = v->name,
		.tid = v->tid,
		.end_us = end_us(v->profile),
	};

	memcpy(t.trace_id, v->trace_id, sizeof(t.trace_id));
	memcpy(t.span_id, v->span_id, sizeof(t.span_id));
	return transaction_write(&t, out);
}

static void write_metadata(const struct profile_v1 *v, const char *time, struct json_out *o)
{
	const struct profile *p = v->profile;

	json_out_member(o, "{\"version\":\"1\",\"event_id\":", p->profiler_id);
	json_out_member(o, ",\"platform\":", p->platform);
	json_out_member(o, ",\"timestamp\":", time);
	json_out_member(o, ",\"release\":", p->release);
	json_out_member(o, ",\"environment\":", p->environment);
	json_out_member(o, ",\"device\":{\"architecture\":", v->architecture);
	json_out_member(o, "},\"os\":{\"name\":", v->os_name);
	json_out_member(o, ",\"version\":", v->os_version);
	json_out_member(o, "},\"transaction\":{\"id\":", p->chunk_id);
	json_out_member(o, ",\"name\":", v->name);
	json_out_member(o, ",\"trace_id\":", v->trace_id);
	json_out_raw(o, ",\"active_thread_id\":\"");
	profile_json_thread_id(active(v), o);
	json_out_raw(o, "\"}");
}

int profile_v1_write(const struct profile_v1 *v, FILE *out)
{
	const struct profile *p = v->profile;
	char time[ENVELOPE_TIME_SIZE];
	struct json_out o;
	int r;

	r = envelope_time((int64_t)p->samples[0].time_us, time);
	if (r < 0)
		return r;
	json_out_init(&o, out);
	write_metadata(v, time, &o);
	json_out_raw(&o, ",\"debug_meta\":");
	debug_meta_write(p->images, p->n_images, false, &o);
	json_out_raw(&o, ",");
	r = profile_json_write(p, PROFILE_JSON_ELAPSED, false, &o);
	json_out_raw(&o, "}");
	return r < 0 ? r : json_out_finish(&o);
}
