#include "daemon/ctl/common/status_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Room for a formatted number or word; texts of the daemon have no limit. */
#define CELL_MAX 40

struct column {
	const char *title;
	const char *key;
	/* Formats a value; NULL: the value is a text, and is copied. */
	void (*put)(const json_t *value, char ret[CELL_MAX]);
	bool left; /* aligned to the left: for texts */
};

static void put_sampled(const json_t *v, char ret[CELL_MAX])
{
	(void)snprintf(ret, CELL_MAX, "%s", json_is_true(v) ? "sampled" : "unsampled");
}

static void put_number(const json_t *v, char ret[CELL_MAX])
{
	(void)snprintf(ret, CELL_MAX, "%lld", (long long)json_integer_value(v));
}

/* Formats n with three digits and a unit; each unit is 1000 times the one before. */
static void put_scaled(double n, const char *const units[], char ret[CELL_MAX])
{
	size_t i = 0;

	while (n >= 999.5 && units[i + 1] != NULL) {
		n /= 1000;
		i++;
	}
	(void)snprintf(ret, CELL_MAX, "%.*f %s",
		       n < 9.995 && i > 0 ? 2 : (n < 99.95 && i > 0 ? 1 : 0), n, units[i]);
}

static void put_bytes(const json_t *v, char ret[CELL_MAX])
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", NULL};

	put_scaled(json_number_value(v), units, ret);
}

static void put_us(const json_t *v, char ret[CELL_MAX])
{
	static const char *const units[] = {"us", "ms", "s", NULL};

	put_scaled(json_number_value(v), units, ret);
}

static const struct column columns[] = {
	{"NAME", "name", NULL, true},
	{"PID", "pid", put_number, false},
	{"STATE", "state", NULL, true},
	{"SESSION", "session_sampled", put_sampled, true},
	{"LIFECYCLE", "lifecycle", NULL, true},
	{"HZ", "rate_hz", put_number, false},
	{"THREADS", "threads", put_number, false},
	{"SAMPLES", "samples_taken", put_number, false},
	{"MISSED", "missed", put_number, false},
	{"PAUSE P99", "pause_us_p99", put_us, false},
	{"CHUNKS", "chunks_sent", put_number, false},
	{"BYTES", "bytes_sent", put_bytes, false},
	{"BY", "attached_by", put_number, false},
	{"LAST ERROR", "last_error", NULL, true},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define LAST	(COLUMNS - 1)

/* Between columns, and before a last error that has its own line. */
#define GAP "  "

struct row {
	char *cells[COLUMNS];
};

/*
 * Copies a text of the daemon. The daemon escapes control characters; replaces any that are
 * left, since a terminal would execute them.
 */
static char *plain_copy(const char *text)
{
	char *ret = strdup(text);

	for (char *p = ret; p != NULL && *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			*p = '?';
	return ret;
}

/* Formats a value for its column; "-" if it is missing or of another type. */
static char *cell_of(const struct column *c, const json_t *target)
{
	const json_t *v = json_object_get(target, c->key);
	char text[CELL_MAX] = "";

	if (c->put == NULL)
		return plain_copy(json_is_string(v) && json_string_length(v) > 0
					  ? json_string_value(v)
					  : "-");
	if (c->put == put_sampled ? json_is_boolean(v) : json_is_number(v))
		c->put(v, text);
	return strdup(text[0] == '\0' ? "-" : text);
}

static size_t max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

static void print_row(FILE *out, const struct row *row, const size_t widths[COLUMNS],
		      size_t line_max)
{
	char *const *cells = row->cells;
	size_t n = 0;

	for (size_t i = 0; i < LAST; i++) {
		const int width = (int)widths[i];

		(void)fprintf(out, columns[i].left ? "%-*s" GAP : "%*s" GAP, width, cells[i]);
		n += widths[i] + strlen(GAP);
	}
	/* A last error that does not fit gets the next line. */
	if (n + strlen(cells[LAST]) > line_max)
		(void)fprintf(out, "\n" GAP);
	(void)fprintf(out, "%s\n", cells[LAST]);
}

static int fill(const json_t *targets, struct row *ret)
{
	bool complete = true;

	for (size_t i = 0; i < COLUMNS; i++) {
		ret[0].cells[i] = strdup(columns[i].title);
		complete &= ret[0].cells[i] != NULL;
		for (size_t r = 0; r < json_array_size(targets); r++) {
			ret[r + 1].cells[i] = cell_of(&columns[i], json_array_get(targets, r));
			complete &= ret[r + 1].cells[i] != NULL;
		}
	}
	return complete ? 0 : -ENOMEM;
}

static int print_targets(FILE *out, const json_t *targets, size_t line_max)
{
	const size_t n = json_array_size(targets) + 1;
	size_t widths[COLUMNS] = {0};
	struct row *rows = calloc(n, sizeof(*rows));
	int r = rows == NULL ? -ENOMEM : fill(targets, rows);

	for (size_t k = 0; r == 0 && k < n; k++)
		for (size_t i = 0; i < COLUMNS; i++)
			widths[i] = max_size(widths[i], strlen(rows[k].cells[i]));
	for (size_t k = 0; r == 0 && k < n; k++)
		print_row(out, &rows[k], widths, line_max);
	for (size_t k = 0; rows != NULL && k < n; k++)
		for (size_t i = 0; i < COLUMNS; i++)
			free(rows[k].cells[i]);
	free(rows);
	return r;
}

static double number_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static void print_limit(FILE *out, const char *server, double seconds)
{
	if (seconds > 0)
		(void)fprintf(out,
			      "%s accepts nothing for %.0f s (rate limit): its targets are not "
			      "sampled until then\n",
			      server, seconds);
}

static void print_refusal(FILE *out, const char *server, const json_t *refusal)
{
	const char *text = json_string_value(json_object_get(refusal, "detail"));
	char *detail = plain_copy(text == NULL ? "" : text);

	if (detail != NULL && json_is_object(refusal))
		(void)fprintf(out,
			      "%s refuses the DSN (%.0f%s%s): its targets are not sampled, and "
			      "their chunks wait\n",
			      server, number_of(refusal, "status"), detail[0] != '\0' ? ", " : "",
			      detail);
	free(detail);
}

/* The difference that is logged, too (daemon/ship/destination.h). */
#define CLOCK_MAX_S 5
static void print_clock(FILE *out, const char *server, double ahead_s)
{
	if (ahead_s > CLOCK_MAX_S || ahead_s < -CLOCK_MAX_S)
		(void)fprintf(out,
			      "the clock of this host is %.0f s %s that of %s: "
			      "profiles carry the time of this host\n",
			      ahead_s < 0 ? -ahead_s : ahead_s, ahead_s < 0 ? "ahead of" : "behind",
			      server);
}

/*
 * Prints refusals, rate limits and clock differences. A user who may not see the servers gets the
 * longest limit only, without a name.
 */
static void print_limits(FILE *out, const json_t *daemon)
{
	const json_t *servers = json_object_get(daemon, "servers"), *server;
	size_t i;

	if (!json_is_array(servers))
		print_limit(out, "a server", number_of(daemon, "rate_limited_s"));
	json_array_foreach(servers, i, server)
	{
		const char *text = json_string_value(json_object_get(server, "server"));
		char *name = plain_copy(text == NULL ? "a server" : text);

		if (name != NULL) {
			print_refusal(out, name, json_object_get(server, "refusal"));
			print_limit(out, name, number_of(server, "rate_limited_s"));
			print_clock(out, name, number_of(server, "clock_ahead_s"));
		}
		free(name);
	}
}

/* Prints the rates that the CPU budget has lowered, as the log does (governor.c). */
static void print_lowered(FILE *out, const json_t *daemon)
{
	const json_t *lowered = json_object_get(daemon, "lowered");
	const double targets = number_of(lowered, "targets");

	if (targets > 0)
		(void)fprintf(out,
			      "CPU budget %.0f %%: %.0f of %.0f targets are sampled at only "
			      "%.0f to %.0f Hz\n",
			      number_of(daemon, "cpu_budget_percent"), targets,
			      number_of(daemon, "profiling"), number_of(lowered, "least_hz"),
			      number_of(lowered, "most_hz"));
	if (number_of(lowered, "not_sampled") > 0)
		(void)fprintf(out,
			      "CPU budget %.0f %%: %.0f targets that users have attached are not "
			      "sampled\n",
			      number_of(daemon, "cpu_budget_percent"),
			      number_of(lowered, "not_sampled"));
}

/* A real-time process is not stopped by the quota. */
static void print_quota(FILE *out, const json_t *daemon)
{
	const char *scheduler = json_string_value(json_object_get(daemon, "scheduler"));
	const double quota = number_of(daemon, "cpu_quota_percent");

	if (scheduler != NULL && strcmp(scheduler, "fifo") != 0 && quota > 0)
		(void)fprintf(out,
			      "CPU quota: the daemon's control group has %.0f %% of a core: when "
			      "that is used up, a thread that is being sampled stays stopped until "
			      "the next period; permit SCHED_FIFO, or remove the quota\n",
			      quota);
}

static void print_daemon(FILE *out, const json_t *daemon, size_t n)
{
	const json_t *spool = json_object_get(daemon, "spool");
	const char *version = json_string_value(json_object_get(daemon, "version"));
	char *name = plain_copy(version == NULL ? "" : version);
	char bytes[CELL_MAX];

	put_bytes(json_object_get(spool, "bytes"), bytes);
	(void)fprintf(out,
		      "sentry-profd %s, pid %.0f, up %.0f s, %zu target%s, "
		      "%.0f profiled, %.0f chunks (%s) in the spool\n",
		      name == NULL ? "" : name, number_of(daemon, "pid"),
		      number_of(daemon, "uptime_s"), n, n == 1 ? "" : "s",
		      number_of(daemon, "profiling"), number_of(spool, "waiting"), bytes);
	free(name);
}

/* Prints a line for each section that is not used as it is written, or matches no process. */
static void print_sections(FILE *out, const json_t *sections)
{
	const json_t *section;
	size_t i;

	json_array_foreach(sections, i, section)
	{
		const char *text = json_string_value(json_object_get(section, "name"));
		const char *why = json_string_value(json_object_get(section, "defect"));
		char *name = text == NULL ? NULL : plain_copy(text);
		char *defect = why == NULL ? NULL : plain_copy(why);

		if (name != NULL && defect != NULL)
			(void)fprintf(out, "[target \"%s\"] %s: %s\n", name,
				      json_is_true(json_object_get(section, "off"))
					      ? "is off"
					      : "keeps its former settings",
				      defect);
		else if (name != NULL &&
			 json_integer_value(json_object_get(section, "instances")) == 0)
			(void)fprintf(out,
				      "[target \"%s\"] has matched no process for "
				      "%.0f s\n",
				      name, number_of(section, "empty_s"));
		free(name);
		free(defect);
	}
}

/* Prints the files that are not read any more since unwind died reading them. */
static void print_left_out(FILE *out, const json_t *files)
{
	const json_t *file;
	size_t i;

	json_array_foreach(files, i, file)
	{
		const char *text = json_string_value(json_object_get(file, "file"));
		char *name = text == NULL ? NULL : plain_copy(text);

		if (name == NULL)
			continue;
		(void)fprintf(out,
			      "%s is not read for uid %.0f: the unwinder died "
			      "reading it %.0f times\n",
			      name, number_of(file, "uid"), number_of(file, "deaths"));
		free(name);
	}
}

/* Prints the degraded states: texts that the daemon has made. */
static void print_degraded(FILE *out, const json_t *degraded)
{
	const json_t *state;
	size_t i;

	json_array_foreach(degraded, i, state)
	{
		static const char *const keys[] = {"what", "reason", "effect", "remedy"};
		char *text[array_size(keys)];

		for (size_t k = 0; k < array_size(keys); k++) {
			const char *value = json_string_value(json_object_get(state, keys[k]));

			text[k] = plain_copy(value == NULL ? "" : value);
		}
		if (text[0] != NULL && text[1] != NULL && text[2] != NULL && text[3] != NULL)
			(void)fprintf(out, "degraded for %.0f s: %s%s%s: %s (%s)\n",
				      number_of(state, "since_s"), text[0],
				      text[1][0] != '\0' ? ", because " : "", text[1], text[2],
				      text[3]);
		for (size_t k = 0; k < array_size(keys); k++)
			free(text[k]);
	}
}

void status_table_faults(const json_t *daemon, FILE *out)
{
	print_lowered(out, daemon);
	print_quota(out, daemon);
	print_limits(out, daemon);
	print_degraded(out, json_object_get(daemon, "degraded"));
	print_left_out(out, json_object_get(daemon, "files_left_out"));
}

int status_table_print(const char *json, size_t size, size_t width, FILE *out)
{
	json_t *root = json_loadb(json, size, 0, NULL);
	const json_t *daemon = json_object_get(root, "daemon");
	const json_t *targets = json_object_get(root, "targets");
	int r = -EPROTO;

	if (json_is_object(daemon) && json_is_array(targets)) {
		print_daemon(out, daemon, json_array_size(targets));
		status_table_faults(daemon, out);
		print_sections(out, json_object_get(daemon, "sections"));
		r = json_array_size(targets) == 0
			    ? 0
			    : print_targets(out, targets, width > 0 ? width : SIZE_MAX);
	}
	json_decref(root);
	return r;
}
