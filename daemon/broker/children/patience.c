#include "daemon/broker/children/patience.h"

#include "lib/base/clock.h"

void patience_start(struct patience *p, uint64_t now_ns)
{
	*p = (struct patience){.began_ns = now_ns, .busy_ns = now_ns};
}

uint64_t patience_end_ns(struct patience *p, uint64_t now_ns, bool busy)
{
	if (busy)
		p->busy_ns = now_ns;
	return min_u64(p->busy_ns + PATIENCE_IDLE_NS, p->began_ns + PATIENCE_BUSY_NS);
}
