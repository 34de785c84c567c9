#include "proto/transaction.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/json_out.h"
#include "proto/profile_json.h"

/* Writes the contexts that the specification requires for a transaction with a profile. */
static void write_contexts(const struct transaction *t, struct json_out *o)
{
	const struct profile *p = t->profile;
	const struct profile_thread *thread = &p->threads[profile_find_thread(p, t->tid)];

	json_out_member(o, ",\"contexts\":{\"trace\":{\"trace_id\":", t->trace_id);
	json_out_member(o, ",\"span_id\":", t->span_id);
	json_out_raw(o, ",\"op\":\"profile\",\"data\":{\"thread.id\":\"");
	profile_json_thread_id(thread, o);
	json_out_raw(o, "\"");
	if (thread->name[0] != '\0')
		json_out_member(o, ",\"thread.name\":", thread->name);
	json_out_raw(o, "}}");
	if (t->of_chunk) {
		json_out_member(o, ",\"profile\":{\"profiler_id\":", p->profiler_id);
		json_out_raw(o, "}");
	}
	json_out_raw(o, "}");
}

int transaction_write(const struct transaction *t, FILE *out)
{
	const struct profile *p = t->profile;
	struct json_out o;

	json_out_init(&o, out);
	json_out_member(&o, "{\"type\":\"transaction\",\"event_id\":", p->chunk_id);
	json_out_member(&o, ",\"transaction\":", t->name);
	json_out_member(&o, ",\"transaction_info\":{\"source\":", "custom");
	json_out_member(&o, "},\"platform\":", p->platform);
	json_out_member(&o, ",\"release\":", p->release);
	json_out_member(&o, ",\"environment\":", p->environment);
	json_out_raw(&o, ",\"start_timestamp\":");
	json_out_seconds(&o, p->samples[0].time_us);
	json_out_raw(&o, ",\"timestamp\":");
	json_out_seconds(&o, t->end_us);
	json_out_member(&o, ",\"sdk\":{\"name\":", p->sdk_name);
	json_out_member(&o, ",\"version\":", p->sdk_version);
	json_out_raw(&o, "}");
	write_contexts(t, &o);
	json_out_raw(&o, ",\"spans\":[]}");
	return json_out_finish(&o);
}

struct thread_time {
	const struct profile_sample *last;
	uint64_t run_us;
};

static bool is_running(const struct profile_sample *s)
{
	return s->node != PROFILE_NONE && s->state == PROFILE_RUNNING;
}

int transaction_busiest(const struct profile *p, uint32_t *ret_tid)
{
	struct thread_time *times = calloc(p->n_threads, sizeof(*times));
	uint64_t most_us = 0;

	if (times == NULL)
		return -ENOMEM;
	*ret_tid = p->samples[0].tid;
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];
		struct thread_time *t = &times[profile_find_thread(p, s->tid)];

		if (t->last != NULL && is_running(t->last))
			t->run_us += s->time_us - t->last->time_us;
		t->last = s;
		if (t->run_us > most_us) {
			most_us = t->run_us;
			*ret_tid = s->tid;
		}
	}
	free(times);
	return 0;
}
