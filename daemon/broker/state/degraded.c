#include "daemon/broker/state/degraded.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/common/log.h"
#include "lib/base/clock.h"

void degraded_begin(struct degraded *d, enum degraded_kind kind, const char *format, ...)
{
	const struct degraded_kind_text *l = &degraded_kind_texts[kind];
	struct degraded_state *s = &d->v[kind];
	char reason[DEGRADED_REASON_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (s->since_ns != 0 && strcmp(s->reason, reason) == 0)
		return;
	if (s->since_ns == 0)
		s->since_ns = clock_mono_ns();
	memcpy(s->reason, reason, sizeof(reason));
	log_warning("degraded: %s%s%s: %s (%s)", l->name, reason[0] != '\0' ? ", because " : "",
		    reason, l->effect, l->remedy);
}

void degraded_end(struct degraded *d, enum degraded_kind kind)
{
	struct degraded_state *s = &d->v[kind];

	if (s->since_ns == 0)
		return;
	log_warning("no longer degraded: after %llu s this has ended: %s",
		    (unsigned long long)((clock_mono_ns() - s->since_ns) / NS_PER_SEC),
		    degraded_kind_texts[kind].name);
	*s = (struct degraded_state){0};
}

enum degraded_kind degraded_next(const struct degraded *d, enum degraded_kind kind)
{
	while (kind < DEGRADED_N && d->v[kind].since_ns == 0)
		kind++;
	return kind;
}

size_t degraded_count(const struct degraded *d)
{
	size_t n = 0;

	for (size_t i = 0; i < DEGRADED_N; i++)
		n += d->v[i].since_ns != 0;
	return n;
}
