#include "daemon/broker/targets/self_usage.h"

#include "daemon/broker/children/children.h"
#include "daemon/broker/targets/totals.h"

/* The weights by which an instance is charged. Only their ratio to the sum counts. */
struct weights {
	uint64_t capture;
	uint64_t unwind;
	uint64_t ship;
};

static struct weights weights_of(const struct targets *ts, const struct instance *i)
{
	struct run_totals f;

	totals_of_instance(ts, i, &f);
	return (struct weights){
		.capture = f.capture.cost_ns,
		.unwind = f.unwind.cost_ns,
		.ship = f.payload_bytes,
	};
}

/* Returns the unwind process of the instance's owner; NULL: there is none. */
static const struct unwind *unwind_of(const struct targets *ts, const struct instance *i)
{
	const struct owner_key key = owner_key(&i->owner);

	for (size_t k = 0; k < ts->children->n_unwinds; k++)
		if (owner_key_equal(&ts->children->unwinds[k]->key, &key))
			return ts->children->unwinds[k];
	return NULL;
}

/* If all weights are 0, each of the n instances gets the same share. */
static double share(double whole, uint64_t weight, uint64_t sum, size_t n)
{
	return sum > 0 ? whole * ((double)weight / (double)sum) : whole / (double)n;
}

static struct usage of_ships(const struct targets *ts)
{
	struct usage sum = ts->children->ships_gone;

	for (size_t i = 0; i < ts->children->n_ships; i++)
		children_add_usage(&sum, &ts->children->ships[i]->child.usage);
	return sum;
}

void self_usage_of_all(const struct targets *ts, struct usage own, struct usage ret[SELF_USAGE_N])
{
	ret[SELF_USAGE_BROKER] = own;
	ret[SELF_USAGE_CAPTURE] = ts->children->capture.usage;
	ret[SELF_USAGE_UNWIND] = ts->children->unwinds_gone;
	ret[SELF_USAGE_SHIP] = of_ships(ts);
	for (size_t i = 0; i < ts->children->n_unwinds; i++)
		children_add_usage(&ret[SELF_USAGE_UNWIND], &ts->children->unwinds[i]->child.usage);
}

void self_usage_of_instance(const struct targets *ts, struct usage own, const struct instance *i,
			    struct usage ret[SELF_USAGE_N])
{
	const struct unwind *unwind = unwind_of(ts, i);
	const struct weights mine = weights_of(ts, i);
	const size_t n = ts->n_instances;
	struct weights all = {0};
	size_t n_unwind = 0;

	for (size_t k = 0; k < n; k++) {
		const struct instance *other = ts->instances[k];
		const struct weights w = weights_of(ts, other);

		all.capture += w.capture;
		all.ship += w.ship;
		if (!owner_is_same(&other->owner, &i->owner))
			continue;
		all.unwind += w.unwind;
		n_unwind++;
	}
	ret[SELF_USAGE_BROKER] = own;
	ret[SELF_USAGE_BROKER].cpu_s /= (double)n;
	ret[SELF_USAGE_CAPTURE] = ts->children->capture.usage;
	ret[SELF_USAGE_CAPTURE].cpu_s =
		share(ts->children->capture.usage.cpu_s, mine.capture, all.capture, n);
	ret[SELF_USAGE_UNWIND] = (struct usage){0};
	if (unwind != NULL) {
		ret[SELF_USAGE_UNWIND] = unwind->child.usage;
		ret[SELF_USAGE_UNWIND].cpu_s =
			share(ret[SELF_USAGE_UNWIND].cpu_s, mine.unwind, all.unwind, n_unwind);
	}
	ret[SELF_USAGE_SHIP] = of_ships(ts);
	ret[SELF_USAGE_SHIP].cpu_s = share(ret[SELF_USAGE_SHIP].cpu_s, mine.ship, all.ship, n);
}
