#include "daemon/status_table.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A cell's text; longer ones are cut off. */
#define CELL_MAX 40
/* A path that is left out, which the daemon has cut off. */
#define LEFT_OUT_MAX 256

/* Has a line of its own: host, port and project, as proto/dsn.h makes it. */
#define SERVER_MAX 400

struct column {
	const char *title;
	const char *key;
	void (*put)(const json_t *value, char ret[CELL_MAX]);
	bool left; /* texts; numbers stand to the right */
};

static void put_text(const json_t *v, char ret[CELL_MAX])
{
	(void)snprintf(ret, CELL_MAX, "%s", json_string_value(v));
}

/* "session": what was decided once for it. */
static void put_sampled(const json_t *v, char ret[CELL_MAX])
{
	(void)snprintf(ret, CELL_MAX, "%s",
		       json_is_true(v) ? "sampled" : "unsampled");
}

static void put_number(const json_t *v, char ret[CELL_MAX])
{
	(void)snprintf(ret, CELL_MAX, "%lld", (long long)json_integer_value(v));
}

/* Three digits, with a unit: of 1000 each. */
static void put_scaled(double n, const char *const units[], char ret[CELL_MAX])
{
	size_t i = 0;

	while (n >= 999.5 && units[i + 1] != NULL) {
		n /= 1000;
		i++;
	}
	(void)snprintf(ret, CELL_MAX, "%.*f %s",
		       n < 9.995 && i > 0 ? 2 : (n < 99.95 && i > 0 ? 1 : 0), n,
		       units[i]);
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
	{"NAME", "name", put_text, true},
	{"PID", "pid", put_number, false},
	{"STATE", "state", put_text, true},
	{"SESSION", "session_sampled", put_sampled, true},
	{"LIFECYCLE", "lifecycle", put_text, true},
	{"HZ", "rate_hz", put_number, false},
	{"THREADS", "threads", put_number, false},
	{"SAMPLES", "samples_taken", put_number, false},
	{"MISSED", "missed", put_number, false},
	{"PAUSE P99", "pause_us_p99", put_us, false},
	{"CHUNKS", "chunks_sent", put_number, false},
	{"BYTES", "bytes_sent", put_bytes, false},
	{"LAST ERROR", "last_error", put_text, true},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

typedef char cells[COLUMNS][CELL_MAX];

/* The texts are the daemon's, who escapes; a terminal is to see no control. */
static void make_plain(char *text)
{
	for (char *p = text; *p != '\0'; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			*p = '?';
}

static void fill(const json_t *target, cells ret)
{
	for (size_t i = 0; i < COLUMNS; i++) {
		const json_t *v = json_object_get(target, columns[i].key);
		const bool is_text = columns[i].put == put_text;
		const bool is_flag = columns[i].put == put_sampled;

		if (is_text   ? json_is_string(v)
		    : is_flag ? json_is_boolean(v)
			      : json_is_number(v))
			columns[i].put(v, ret[i]);
		else
			ret[i][0] = '\0';
		if (ret[i][0] == '\0')
			memcpy(ret[i], "-", 2);
		make_plain(ret[i]);
	}
}

static void print_row(FILE *out, const cells row, const size_t widths[COLUMNS])
{
	for (size_t i = 0; i < COLUMNS; i++) {
		const int width = (int)widths[i];

		if (i + 1 == COLUMNS)
			(void)fprintf(out, "%s\n", row[i]);
		else if (columns[i].left)
			(void)fprintf(out, "%-*s  ", width, row[i]);
		else
			(void)fprintf(out, "%*s  ", width, row[i]);
	}
}

static int print_targets(FILE *out, const json_t *targets)
{
	const size_t n = json_array_size(targets);
	size_t widths[COLUMNS] = {0};
	cells *rows = calloc(n + 1, sizeof(*rows));

	if (rows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < COLUMNS; i++)
		(void)snprintf(rows[0][i], CELL_MAX, "%s", columns[i].title);
	for (size_t i = 0; i < n; i++)
		fill(json_array_get(targets, i), rows[i + 1]);
	for (size_t r = 0; r <= n; r++)
		for (size_t i = 0; i < COLUMNS; i++)
			if (strlen(rows[r][i]) > widths[i])
				widths[i] = strlen(rows[r][i]);
	for (size_t r = 0; r <= n; r++)
		print_row(out, (const char(*)[CELL_MAX])rows[r], widths);
	free(rows);
	return 0;
}

static double number_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static void print_limit(FILE *out, const char *server, double seconds)
{
	if (seconds > 0)
		(void)fprintf(out,
			      "%s takes nothing for %.0f s: its targets are "
			      "not sampled until then\n",
			      server, seconds);
}

/* Who may not see the servers is told that there is one. */
static void print_limits(FILE *out, const json_t *daemon)
{
	const json_t *servers = json_object_get(daemon, "servers"), *server;
	size_t i;

	if (!json_is_array(servers))
		print_limit(out, "a server",
			    number_of(daemon, "rate_limited_s"));
	json_array_foreach(servers, i, server)
	{
		const char *text =
			json_string_value(json_object_get(server, "server"));
		char name[SERVER_MAX];

		(void)snprintf(name, sizeof(name), "%s",
			       text == NULL ? "a server" : text);
		make_plain(name);
		print_limit(out, name, number_of(server, "rate_limited_s"));
	}
}

static void print_daemon(FILE *out, const json_t *daemon, size_t n)
{
	const json_t *spool = json_object_get(daemon, "spool");
	const json_t *version = json_object_get(daemon, "version");
	char name[CELL_MAX] = "", bytes[CELL_MAX];

	if (json_is_string(version))
		put_text(version, name);
	make_plain(name);
	put_bytes(json_object_get(spool, "bytes"), bytes);
	(void)fprintf(out,
		      "sentry-profd %s, pid %.0f, up %.0f s, %zu target%s, "
		      "%.0f profiled, %.0f chunks (%s) in the spool\n",
		      name, number_of(daemon, "pid"),
		      number_of(daemon, "uptime_s"), n, n == 1 ? "" : "s",
		      number_of(daemon, "profiling"),
		      number_of(spool, "waiting"), bytes);
	print_limits(out, daemon);
}

/* The files at which unwind has died. */
static void print_left_out(FILE *out, const json_t *files)
{
	char name[LEFT_OUT_MAX];
	const json_t *file;
	size_t i;

	json_array_foreach(files, i, file)
	{
		const json_t *text = json_object_get(file, "file");

		if (!json_is_string(text))
			continue;
		(void)snprintf(name, sizeof(name), "%s",
			       json_string_value(text));
		make_plain(name);
		(void)fprintf(out,
			      "%s is not read for uid %.0f: unwinding died at "
			      "it %.0f times\n",
			      name, number_of(file, "uid"),
			      number_of(file, "deaths"));
	}
}

int status_table_print(const char *json, size_t size, FILE *out)
{
	json_t *root = json_loadb(json, size, 0, NULL);
	const json_t *daemon = json_object_get(root, "daemon");
	const json_t *targets = json_object_get(root, "targets");
	int r = -EPROTO;

	if (json_is_object(daemon) && json_is_array(targets)) {
		print_daemon(out, daemon, json_array_size(targets));
		print_left_out(out, json_object_get(daemon, "files_left_out"));
		r = json_array_size(targets) > 0 ? print_targets(out, targets)
						 : 0;
	}
	json_decref(root);
	return r;
}
