#include "daemon/probe.h"

#include <stdio.h>

#include "daemon/chance.h"
#include "daemon/child.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/ship/package.h"
#include "proto/sdk.h"

#define BODY_MAX 4096

static void make_report(struct reports_item *ret)
{
	static const struct client_report nothing;
	char json[CLIENT_REPORT_SIZE];
	size_t len;
	int n;

	client_report_json(&nothing, (int64_t)(clock_wall_ns() / NS_PER_SEC),
			   json, &len);
	n = snprintf(ret->text, sizeof(ret->text),
		     "{\"type\":\"client_report\",\"length\":%zu}\n%s\n", len,
		     json);
	ret->len = (size_t)n;
}

static int make_body(enum compression compression, struct buf *body)
{
	struct package alone = {
		.sdk_name = SDK_NAME,
		.sdk_version = SDK_VERSION,
		.payload_fd = -1,
		.compression = compression,
	};
	struct reports_item report;

	make_report(&report);
	chance_bytes(alone.event_id, sizeof(alone.event_id));
	return package_compress(&alone, (int64_t)(clock_wall_ns() / NS_PER_US),
				&report, body);
}

static int wait_for_answer(struct transport *transport, struct msg_probed *ret)
{
	struct transport_answer a;
	const char *text;
	bool ignored;

	while (transport_step(transport, &a) == 0) {
		int r = transport_wait(transport, -1, -1, &ignored);

		if (r < 0)
			return r;
	}
	*ret = (struct msg_probed){
		.h = MSG_HEADER(MSG_PROBED),
		.status = a.status,
	};
	text = a.status == 0 ? a.error : a.sentry_error;
	(void)snprintf(ret->text, sizeof(ret->text), "%s",
		       text == NULL ? "" : text);
	return 0;
}

int probe(struct transport *transport, const struct dsn *dsn,
	  enum compression compression, struct msg_probed *ret)
{
	struct buf body;
	int r;

	buf_init(&body, BODY_MAX);
	r = make_body(compression, &body);
	if (r == 0)
		r = transport_set_target(transport, dsn, compression);
	if (r == 0)
		r = transport_post(transport, body.data, body.len);
	if (r == 0)
		r = wait_for_answer(transport, ret);
	buf_fini(&body);
	return r;
}
