#include "daemon/broker/targets/self_usage.h"

#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

static struct broker b;
static struct heartbeat heartbeat;
static struct unwind unwinds[2];
static struct ship ships[2];
static struct instance instances[3], *list[3];
static const struct usage own = {.cpu_s = 3.0, .rss_bytes = 100};

/* Two targets share the first unwind process; the third one uses the other. */
static void set_up(void)
{
	build_broker(&b);
	b.modules.children.n_unwinds = 2;
	b.modules.targets.n_instances = 3;
	b.modules.targets.instances = list;
	heartbeat = (struct heartbeat){0};
	b.modules.children.heartbeat = &heartbeat;
	b.modules.children.capture.usage = (struct usage){.cpu_s = 10.0, .rss_bytes = 200};
	for (size_t i = 0; i < array_size(ships); i++) {
		build_ship(&b, &ships[i]);
		ships[i].child.usage = (struct usage){.cpu_s = 0.5, .rss_bytes = 400 - i};
	}
	for (size_t i = 0; i < 2; i++) {
		unwinds[i] = (struct unwind){.id = (uint32_t)i + 1,
					     .key = {.kind = OWNER_PLAIN, .uid = (uint32_t)i}};
		unwinds[i].child.usage.cpu_s = 4.0 + (double)i;
		unwinds[i].child.usage.rss_bytes = 1000 - i;
		b.modules.children.unwinds[i] = &unwinds[i];
	}
	for (size_t i = 0; i < 3; i++) {
		b.modules.targets.table[i] = (struct run){
			.id = (uint32_t)i + 1,
			.slot = (uint32_t)i,
			.was_attached = true,
		};
		instances[i] = (struct instance){
			.owner = {.kind = OWNER_PLAIN, .uid = (uint32_t)i / 2},
			.run = &b.modules.targets.table[i],
		};
		list[i] = &instances[i];
	}
}

static void check_sums(void)
{
	struct usage all[SELF_USAGE_N], one[SELF_USAGE_N];
	double sum[SELF_USAGE_N] = {0};

	self_usage_of_all(&b.modules.targets, own, all);
	for (size_t i = 0; i < b.modules.targets.n_instances; i++) {
		self_usage_of_instance(&b.modules.targets, own, &instances[i], one);
		for (size_t k = 0; k < SELF_USAGE_N; k++)
			sum[k] += one[k].cpu_s;
	}
	for (size_t k = 0; k < SELF_USAGE_N; k++)
		ck_assert_double_eq_tol(sum[k], all[k].cpu_s, 1e-9);
}

FIXTURE(set_up, NULL)

TEST(totals_are_those_of_all_processes)
{
	struct usage all[SELF_USAGE_N];

	self_usage_of_all(&b.modules.targets, own, all);
	ck_assert_double_eq(all[SELF_USAGE_BROKER].cpu_s, 3.0);
	ck_assert_double_eq(all[SELF_USAGE_CAPTURE].cpu_s, 10.0);
	ck_assert_double_eq(all[SELF_USAGE_UNWIND].cpu_s, 9.0);
	ck_assert_double_eq(all[SELF_USAGE_SHIP].cpu_s, 1.0);
	ck_assert_uint_eq(all[SELF_USAGE_BROKER].rss_bytes, 100);
	ck_assert_uint_eq(all[SELF_USAGE_CAPTURE].rss_bytes, 200);
	ck_assert_uint_eq(all[SELF_USAGE_UNWIND].rss_bytes, 1000);
	ck_assert_uint_eq(all[SELF_USAGE_SHIP].rss_bytes, 400);
}

TEST(without_weights_all_shares_are_equal)
{
	struct usage one[SELF_USAGE_N];

	check_sums();
	self_usage_of_instance(&b.modules.targets, own, &instances[0], one);
	ck_assert_double_eq(one[SELF_USAGE_UNWIND].cpu_s, 2.0);
	self_usage_of_instance(&b.modules.targets, own, &instances[2], one);
	ck_assert_double_eq(one[SELF_USAGE_UNWIND].cpu_s, 5.0);
	ck_assert_uint_eq(one[SELF_USAGE_UNWIND].rss_bytes, 999);
	ck_assert_uint_eq(one[SELF_USAGE_CAPTURE].rss_bytes, 200);
}

TEST(shares_follow_the_weights)
{
	struct usage one[SELF_USAGE_N];

	/* Counters of an earlier capture, and of the present one. */
	b.modules.targets.table[0].capture_past.cost_ns = 100;
	heartbeat.slots[0].cost_ns = 600;
	heartbeat.slots[1].cost_ns = 300;
	b.modules.targets.table[0].unwind_past.cost_ns = 10;
	b.modules.targets.table[0].unwind_now.cost_ns = 20;
	b.modules.targets.table[1].unwind_now.cost_ns = 10;
	b.modules.targets.table[2].unwind_now.cost_ns = 12345;
	instances[0].delivery.payload_bytes = 3;
	instances[2].delivery.payload_bytes = 1;
	check_sums();
	self_usage_of_instance(&b.modules.targets, own, &instances[0], one);
	ck_assert_double_eq_tol(one[SELF_USAGE_BROKER].cpu_s, 1.0, 1e-9);
	ck_assert_double_eq_tol(one[SELF_USAGE_CAPTURE].cpu_s, 7.0, 1e-9);
	ck_assert_double_eq_tol(one[SELF_USAGE_UNWIND].cpu_s, 3.0, 1e-9);
	ck_assert_double_eq_tol(one[SELF_USAGE_SHIP].cpu_s, 0.75, 1e-9);
	self_usage_of_instance(&b.modules.targets, own, &instances[2], one);
	ck_assert_double_eq_tol(one[SELF_USAGE_CAPTURE].cpu_s, 0.0, 1e-9);
	ck_assert_double_eq_tol(one[SELF_USAGE_UNWIND].cpu_s, 5.0, 1e-9);
}

TEST(an_instance_without_unwind_process_has_no_share_of_unwind)
{
	struct usage one[SELF_USAGE_N];

	b.modules.children.n_unwinds = 1;
	check_sums();
	self_usage_of_instance(&b.modules.targets, own, &instances[2], one);
	ck_assert_uint_eq(one[SELF_USAGE_UNWIND].rss_bytes, 0);
}
