#include "proto/client_report.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const reason_names[CLIENT_REPORT_REASON_N] = {
	[CLIENT_REPORT_QUEUE_OVERFLOW] = "queue_overflow",
	[CLIENT_REPORT_CACHE_OVERFLOW] = "cache_overflow",
	[CLIENT_REPORT_RATELIMIT_BACKOFF] = "ratelimit_backoff",
	[CLIENT_REPORT_NETWORK_ERROR] = "network_error",
	[CLIENT_REPORT_SEND_ERROR] = "send_error",
	[CLIENT_REPORT_INSUFFICIENT_DATA] = "insufficient_data",
	[CLIENT_REPORT_BACKPRESSURE] = "backpressure",
	[CLIENT_REPORT_INTERNAL_SDK_ERROR] = "internal_sdk_error",
};

/* The categories that an envelope of each kind counts in, ended by NULL. */
static const char *const categories[ENVELOPE_KIND_N][4] = {
	[ENVELOPE_CHUNK] = {"profile_chunk"},
	[ENVELOPE_V1] = {"transaction", "span", "profile"},
};

bool client_report_is_empty(const struct client_report *r)
{
	for (size_t kind = 0; kind < ENVELOPE_KIND_N; kind++)
		for (size_t i = 0; i < CLIENT_REPORT_REASON_N; i++)
			if (r->quantity[kind][i] > 0)
				return false;
	return true;
}

/* Appends text. CLIENT_REPORT_SIZE has room for the longest report. */
__attribute__((format(printf, 3, 4))) static void add(char *ret, size_t *len, const char *format,
						      ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(ret + *len, CLIENT_REPORT_SIZE - *len, format, args);
	va_end(args);
	assert(n >= 0 && (size_t)n < CLIENT_REPORT_SIZE - *len);
	*len += (size_t)n;
}

/* Appends the counts of a kind. *first: no comma is needed before the next one. */
static void add_kind(const struct client_report *r, enum envelope_kind kind, bool *first, char *ret,
		     size_t *len)
{
	for (size_t i = 0; i < CLIENT_REPORT_REASON_N; i++) {
		const char *const *category = categories[kind];

		for (; r->quantity[kind][i] > 0 && *category != NULL; category++) {
			add(ret, len,
			    "%s{\"reason\":\"%s\",\"category\":\"%s\","
			    "\"quantity\":%llu}",
			    *first ? "" : ",", reason_names[i], *category,
			    (unsigned long long)r->quantity[kind][i]);
			*first = false;
		}
	}
}

void client_report_json(const struct client_report *r, int64_t unix_s, char ret[CLIENT_REPORT_SIZE],
			size_t *ret_len)
{
	bool first = true;
	size_t len = 0;

	add(ret, &len, "{\"timestamp\":%lld,\"discarded_events\":[", (long long)unix_s);
	for (int kind = 0; kind < ENVELOPE_KIND_N; kind++)
		add_kind(r, (enum envelope_kind)kind, &first, ret, &len);
	add(ret, &len, "]}");
	*ret_len = len;
}
