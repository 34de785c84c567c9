#include "proto/chunk_v2.h"

#include <stdbool.h>

#include "proto/debug_meta.h"
#include "proto/json_out.h"
#include "proto/profile_json.h"

enum curve { CURVE_CPU, CURVE_MEMORY, CURVE_ANONYMOUS };

/* Writes "name":{"unit":...,"values":[...]}. */
static void write_curve(const struct profile *p, enum curve curve, struct json_out *o)
{
	static const char *const heads[] = {
		[CURVE_CPU] = "\"cpu_usage\":{\"unit\":\"percent\"",
		[CURVE_MEMORY] = "\"memory_footprint\":{\"unit\":\"byte\"",
		[CURVE_ANONYMOUS] = "\"memory_native_footprint\":{\"unit\":\"byte\"",
	};

	json_out_raw(o, heads[curve]);
	json_out_raw(o, ",\"values\":[");
	for (size_t i = 0; i < p->n_measurements; i++) {
		const struct profile_measurement *m = &p->measurements[i];

		json_out_raw(o, i > 0 ? ",{\"timestamp\":" : "{\"timestamp\":");
		json_out_seconds(o, m->time_us);
		json_out_raw(o, ",\"value\":");
		switch (curve) {
		case CURVE_CPU:
			/* A decimal number in millionths, as seconds are in microseconds. */
			json_out_seconds(o, m->cpu_percent_millionths);
			break;
		case CURVE_MEMORY:
			json_out_u64(o, m->memory_bytes);
			break;
		case CURVE_ANONYMOUS:
			json_out_u64(o, m->anonymous_bytes);
			break;
		}
		json_out_raw(o, "}");
	}
	json_out_raw(o, "]}");
}

static void write_measurements(const struct profile *p, struct json_out *o)
{
	if (p->n_measurements == 0)
		return;
	json_out_raw(o, ",\"measurements\":{");
	write_curve(p, CURVE_CPU, o);
	json_out_raw(o, ",");
	write_curve(p, CURVE_MEMORY, o);
	json_out_raw(o, ",");
	write_curve(p, CURVE_ANONYMOUS, o);
	json_out_raw(o, "}");
}

int chunk_v2_write(const struct profile *p, enum chunk_v2_reader reader, FILE *out)
{
	const bool for_file = reader == CHUNK_V2_FILE;
	struct json_out o;
	int r;

	json_out_init(&o, out);
	json_out_member(&o, "{\"version\":\"2\",\"profiler_id\":", p->profiler_id);
	json_out_member(&o, ",\"chunk_id\":", p->chunk_id);
	json_out_member(&o, ",\"platform\":", p->platform);
	json_out_member(&o, ",\"release\":", p->release);
	json_out_member(&o, ",\"environment\":", p->environment);
	json_out_member(&o, ",\"client_sdk\":{\"name\":", p->sdk_name);
	json_out_member(&o, ",\"version\":", p->sdk_version);
	json_out_raw(&o, "},\"debug_meta\":");
	debug_meta_write(p->images, p->n_images, for_file, &o);
	if (for_file)
		json_out_raw(&o, ",\"" PROFILE_READY_KNOWN "\":true");
	if (for_file && p->symbols != NULL)
		json_out_member(&o, ",\"" PROFILE_SYMBOLS "\":", p->symbols);
	if (for_file && p->command_line != NULL)
		json_out_member(&o, ",\"" PROFILE_COMMAND_LINE "\":", p->command_line);
	write_measurements(p, &o);
	json_out_raw(&o, ",");
	r = profile_json_write(p, PROFILE_JSON_UNIX, for_file, &o);
	json_out_raw(&o, "}");
	return r < 0 ? r : json_out_finish(&o);
}
