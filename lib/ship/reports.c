#include "lib/ship/reports.h"

#include <string.h>

void reports_init(struct reports *r, uint64_t now_ns)
{
	*r = (struct reports){.last_ns = now_ns};
}

void reports_count(struct reports *r, enum envelope_kind kind, enum client_report_reason reason,
		   uint64_t n)
{
	r->counted.quantity[kind][reason] += n;
}

bool reports_any(const struct reports *r)
{
	return !client_report_is_empty(&r->counted) && client_report_is_empty(&r->in_flight);
}

uint64_t reports_with_envelope_ns(const struct reports *r)
{
	return reports_any(r) ? r->last_ns + REPORTS_WITH_ENVELOPE_NS : UINT64_MAX;
}

uint64_t reports_alone_ns(const struct reports *r)
{
	return reports_any(r) ? r->last_ns + REPORTS_ALONE_NS : UINT64_MAX;
}

int reports_make(const struct client_report *r, int64_t unix_s, struct reports_item *ret)
{
	struct envelope_item item = {.type = "client_report"};
	char json[CLIENT_REPORT_SIZE];
	size_t json_len;
	int n;

	client_report_json(r, unix_s, json, &json_len);
	item.length = json_len;
	n = envelope_item_header(&item, ret->text, ENVELOPE_HEADER_SIZE, &ret->len);
	if (n < 0)
		return n;
	memcpy(ret->text + ret->len, json, json_len);
	ret->len += json_len;
	memcpy(ret->text + ret->len, ENVELOPE_LINE_END, strlen(ENVELOPE_LINE_END));
	ret->len += strlen(ENVELOPE_LINE_END);
	return 0;
}

int reports_take(struct reports *r, uint64_t now_ns, int64_t unix_s, struct reports_item *ret)
{
	int n = reports_make(&r->counted, unix_s, ret);

	if (n < 0)
		return n;
	r->in_flight = r->counted;
	r->counted = (struct client_report){0};
	r->last_ns = now_ns;
	return 0;
}

void reports_arrived(struct reports *r)
{
	r->in_flight = (struct client_report){0};
}

void reports_failed(struct reports *r)
{
	for (size_t kind = 0; kind < ENVELOPE_KIND_N; kind++)
		for (size_t i = 0; i < CLIENT_REPORT_REASON_N; i++)
			r->counted.quantity[kind][i] += r->in_flight.quantity[kind][i];
	reports_arrived(r);
}
