#include "daemon/unwind/maps_age.h"

void maps_age_begin(struct maps_age *a, uint64_t now_ns)
{
	*a = (struct maps_age){.read_ns = now_ns};
}

bool maps_age_sample(struct maps_age *a, uint64_t now_ns)
{
	const uint64_t age_ns = now_ns - a->read_ns;

	a->samples++;
	return age_ns >= (a->samples >= MAPS_SAMPLES ? MAPS_EVERY_NS : MAPS_SELDOM_NS);
}

bool maps_age_unknown(const struct maps_age *a, uint64_t now_ns)
{
	return now_ns - a->read_ns >= MAPS_UNKNOWN_NS;
}
