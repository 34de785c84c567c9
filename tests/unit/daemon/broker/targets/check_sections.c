/*
 * How many processes each [target] section matches, what is logged of a section without a process,
 * and the totals of a section. The only instance is one of the section "one".
 */
#include "daemon/broker/targets/sections.h"

#include <poll.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/config/config.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/log_capture.h"
#include "tests/unit/suite.h"

static struct section_config targets[2];
static struct config config = {.sections = targets, .n_sections = 2};
static struct instance instance;
static struct instance *instances[] = {&instance};
static struct broker b;
static struct loop *loop;
static struct files *files;
static struct sections s;

static void set_up(void)
{
	targets[0] = (struct section_config){.name = "one", .exe = "/nowhere/x"};
	targets[1] = (struct section_config){.name = "two", .comm = "x", .min_age_s = 10};
	build_broker(&b);
	b.modules.targets.instances = instances;
	instance = (struct instance){.targets = &b.modules.targets, .config = targets[0]};
	OK(loop_new(&loop));
	OK(files_new(loop, &files));
	sections_init(&s, files);
	ck_assert_int_eq(sections_configure(&s, &config, NS_PER_SEC), 0);
}

static void tear_down(void)
{
	sections_fini(&s);
	files_free(files);
	loop_free(loop);
}

/* Runs the loop until the helper has answered. */
static void answer(void)
{
	for (int i = 0; i < 100; i++) {
		files_check(files);
		(void)!loop_run_once(loop, 10);
	}
}

FIXTURE(set_up, tear_down)

TEST(one_line_is_logged_after_a_minute_without_a_process)
{
	const uint64_t due = NS_PER_SEC + SECTIONS_WARN_NS;

	log_capture_begin();
	sections_check(&s, &b.modules.targets, due - 1);
	answer();
	ck_assert_uint_eq(log_capture_end("[target"), 0);
	log_capture_begin();
	sections_check(&s, &b.modules.targets, due);
	sections_check(&s, &b.modules.targets, due + NS_PER_SEC);
	answer();
	ck_assert_uint_eq(log_capture_end("[target \"one\"] has matched no process since "
					  "the configuration was read: exe = /nowhere/x: "
					  "no such file on this host"),
			  1);
	/* Its processes match when they are 10 s old. */
	log_capture_begin();
	sections_check(&s, &b.modules.targets, due + 10 * NS_PER_SEC - 1);
	ck_assert_uint_eq(log_capture_end("[target"), 0);
	log_capture_begin();
	sections_check(&s, &b.modules.targets, due + 10 * NS_PER_SEC);
	sections_check(&s, &b.modules.targets, due + 90 * NS_PER_SEC);
	answer();
	ck_assert_uint_eq(log_capture_end("[target \"two\"] has matched no process since "
					  "the configuration was read (sentry-profctl doctor PID "),
			  1);
}

TEST(no_line_is_logged_after_a_match)
{
	b.modules.targets.n_instances = 1;
	sections_check(&s, &b.modules.targets, 2 * NS_PER_SEC);
	ck_assert_uint_eq(s.v[0].instances, 1);
	ck_assert_uint_eq(s.v[0].empty_since_ns, 0);
	ck_assert_uint_eq(s.v[1].instances, 0);
	ck_assert_uint_eq(s.v[1].empty_since_ns, NS_PER_SEC);
	instance.life = INSTANCE_ENDED;
	sections_check(&s, &b.modules.targets, 5 * NS_PER_SEC);
	ck_assert_uint_eq(s.v[0].instances, 0);
	ck_assert_uint_eq(s.v[0].empty_since_ns, 5 * NS_PER_SEC);
	log_capture_begin();
	sections_check(&s, &b.modules.targets, 65 * NS_PER_SEC);
	answer();
	ck_assert_uint_eq(log_capture_end("\"one\""), 0);
}

/* A section is found by its name, whatever its index is now. */
TEST(totals_outlive_a_process_and_a_reload)
{
	const struct section_config first = targets[0];
	struct run_totals f;

	instance.delivery.chunks.sent = 3;
	b.modules.targets.n_instances = 1;
	sections_totals(&s.v[0], &b.modules.targets, &f);
	ck_assert_uint_eq(f.chunks.sent, 3);
	sections_instance_gone(&s, &instance);
	b.modules.targets.n_instances = 0;
	targets[0] = targets[1];
	targets[1] = first;
	ck_assert_int_eq(sections_configure(&s, &config, 9 * NS_PER_SEC), 0);
	sections_totals(&s.v[1], &b.modules.targets, &f);
	ck_assert_uint_eq(f.chunks.sent, 3);
	sections_totals(&s.v[0], &b.modules.targets, &f);
	ck_assert_uint_eq(f.chunks.sent, 0);
	/* Attached by a user: it belongs to no section. */
	instance.origin = INSTANCE_ATTACHED;
	sections_instance_gone(&s, &instance);
	sections_totals(&s.v[1], &b.modules.targets, &f);
	ck_assert_uint_eq(f.chunks.sent, 3);
}

TEST(a_reload_keeps_the_numbers_of_processes)
{
	b.modules.targets.n_instances = 1;
	sections_check(&s, &b.modules.targets, 2 * NS_PER_SEC);
	ck_assert_int_eq(sections_configure(&s, &config, 9 * NS_PER_SEC), 0);
	ck_assert_uint_eq(s.v[0].instances, 1);
	ck_assert_uint_eq(s.v[0].empty_since_ns, 0);
	ck_assert_uint_eq(s.v[1].empty_since_ns, NS_PER_SEC);
}
