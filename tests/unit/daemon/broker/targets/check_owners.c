#include "daemon/broker/targets/owners.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "daemon/broker/targets/instances.h"
#include "daemon/broker/targets/lifecycle.h"
#include "daemon/process/process.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/daemon/full.h"
#include "tests/unit/daemon/process/owned.h"
#include "tests/unit/suite.h"

#define USER 60001

static struct broker b;
static struct instance i;
static struct instance *list[] = {&i};
static struct owned process;
static struct instance *told;
static uint64_t mono_ns;

static uint64_t mono(void)
{
	return mono_ns;
}

/* A process of root that takes a user's ids in several ways. */
static int take(char step)
{
	switch (step) {
	case 'e':
		return seteuid(USER);
	case 'E':
		return seteuid(0);
	case 'u':
		return setgroups(0, NULL) != 0 || setresgid(USER, USER, USER) != 0 ||
		       setresuid(USER, USER, USER) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0;
	default:
		return prctl(PR_SET_DUMPABLE, step == 'p', 0, 0, 0);
	}
}

static void on_owner_changed(void *ctx, struct instance *changed)
{
	(void)ctx;
	told = changed;
}

static void set_up(void)
{
	owned_start(&process, take);
	build_broker(&b);
	b.modules.state.clocks.mono = mono;
	b.modules.targets.instances = list;
	b.modules.targets.n_instances = 1;
	b.modules.targets.events.owner_changed = on_owner_changed;
	mono_ns = 1000 * NS_PER_SEC;
	told = NULL;
	i = (struct instance){.pid = process.pid,
			      .is_sampled = true,
			      .is_started = true,
			      .next_profiler_id = "1111"};
	i.pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
	(void)build_run(&b, &i, NULL);
}

static void tear_down(void)
{
	owned_end(&process);
	close_fd(&i.pidfd);
}

static int check(void)
{
	return owners_check(&b.modules.targets, i.run);
}

/* Ends the run, and begins the next one if it may. Returns what owners_begin() returns. */
static int begin_again(void)
{
	int r = owners_begin(&b.modules.targets, &i);

	if (i.run != NULL)
		i.run->is_retired = true;
	targets_sweep(&b.modules.targets);
	i.run = NULL;
	if (r == 0)
		(void)build_run(&b, &i, NULL);
	return r;
}

FIXTURE(set_up, tear_down)

TEST(a_run_goes_on_while_the_key_is_the_same)
{
	OK(check());
	owners_check_all(&b.modules.targets);
	ck_assert(run_is_open(i.run));
	ck_assert_ptr_null(told);
}

TEST_IF(another_key_ends_the_run, getuid() == 0)
{
	owned_go(&process, 'u');
	ck_assert_int_eq(check(), -EACCES);
	ck_assert(!run_is_open(i.run));
	ck_assert_ptr_eq(told, &i);
	ck_assert_int_eq(i.life, INSTANCE_LIVES);
	/* Nothing is read of the process for the old run, whatever it is now. */
	ck_assert_int_eq(check(), -EACCES);
	ck_assert_uint_eq(i.owner_changes, 1);
}

/* Capture's word comes before the broker has seen the change itself. */
TEST_IF(a_change_that_capture_has_seen_counts_once, getuid() == 0)
{
	owned_go(&process, 'u');
	owners_end_run(&b.modules.targets, i.run);
	ck_assert(!run_is_open(i.run));
	OK(begin_again());
	OK(check());
	ck_assert_uint_eq(i.owner_changes, 1);
}

/* Each second only two files are looked at. */
static const char steps[] = "eu";

TESTS(the_look_of_each_second_sees_a_change, getuid() == 0 ? sizeof(steps) - 1 : 0)
{
	owned_go(&process, steps[_i]);
	owners_check_all(&b.modules.targets);
	ck_assert(!run_is_open(i.run));
}

TEST_IF(runs_end_by_a_change_once_in_ten_seconds, getuid() == 0)
{
	owned_go(&process, 'u');
	ck_assert_int_eq(check(), -EACCES);
	OK(begin_again());
	mono_ns += NS_PER_SEC;
	owned_go(&process, 'd');
	ck_assert_int_eq(check(), -EACCES);
	ck_assert_int_eq(begin_again(), -EAGAIN);
	mono_ns += 8 * NS_PER_SEC;
	ck_assert_int_eq(begin_again(), -EAGAIN);
	mono_ns += NS_PER_SEC;
	OK(begin_again());
	OK(check());
}

static uint64_t wall(void)
{
	return 1763755000 * NS_PER_SEC + mono_ns;
}

static uint64_t boot(void)
{
	return mono_ns;
}

/* One process is one profile: its id, and one offset of the clock. */
TEST_IF(the_next_run_continues_the_profile, getuid() == 0)
{
	struct profile_start before;

	b.modules.state.clocks.wall = wall;
	b.modules.state.clocks.boot = boot;
	run_set_times(&b.modules.state, i.run);
	before = i.run->profile;
	owned_go(&process, 'u');
	ck_assert_int_eq(check(), -EACCES);
	ck_assert_str_eq(lifecycle_profiler_id(&i), before.profiler_id);
	mono_ns += NS_PER_SEC;
	OK(begin_again());
	ck_assert_str_eq(i.run->profile.profiler_id, before.profiler_id);
	ck_assert_uint_eq(i.run->profile.wall_offset_us, before.wall_offset_us);
	/* But not if the next run begins for another reason. */
	OK(begin_again());
	ck_assert_str_ne(i.run->profile.profiler_id, before.profiler_id);
}

static uint64_t unsampled_s(void)
{
	return instance_unsampled_ns(&i) / NS_PER_SEC;
}

/* Until the next run begins, or none is wanted. */
TESTS(the_time_without_a_run_is_counted, getuid() == 0 ? 2 : 0)
{
	owned_go(&process, 'u');
	ck_assert_int_eq(check(), -EACCES);
	mono_ns += 2 * NS_PER_SEC;
	ck_assert_uint_eq(unsampled_s(), 2);
	OK(begin_again());
	mono_ns += NS_PER_SEC;
	ck_assert_uint_eq(unsampled_s(), 2);
	owned_go(&process, 'd');
	ck_assert_int_eq(check(), -EACCES);
	mono_ns += 8 * NS_PER_SEC;
	ck_assert_int_eq(begin_again(), -EAGAIN);
	ck_assert_uint_eq(unsampled_s(), 10);
	if (_i == 0) {
		mono_ns += NS_PER_SEC;
		OK(begin_again());
		ck_assert_uint_eq(unsampled_s(), 11);
	} else {
		instance_unsampled_ends(&i);
	}
	mono_ns += 50 * NS_PER_SEC;
	ck_assert_uint_eq(unsampled_s(), _i == 0 ? 11 : 10);
}

TEST_IF(sampling_that_has_ended_is_no_time_without_a_run, getuid() == 0)
{
	owned_go(&process, 'u');
	ck_assert_int_eq(check(), -EACCES);
	b.modules.state.ended_ns = mono_ns + NS_PER_SEC;
	mono_ns += 50 * NS_PER_SEC;
	ck_assert_uint_eq(unsampled_s(), 1);
}

/* Of descriptors: each second, and before the next run. */
TEST(a_shortage_is_no_change)
{
	struct full full;
	int checked, begun;

	full_but(&full, 0);
	checked = check();
	begun = owners_begin(&b.modules.targets, &i);
	full_end(&full);
	ck_assert_int_eq(checked, -EMFILE);
	ck_assert_int_eq(begun, -EMFILE);
	ck_assert(run_is_open(i.run));
	ck_assert_uint_eq(i.owner_changes, 0);
	ck_assert_int_eq(i.life, INSTANCE_LIVES);
}

/* As a server that takes the ids of its clients in turn. */
TEST_IF(a_mixed_process_has_one_run, getuid() == 0)
{
	owned_go(&process, 'e');
	ck_assert_int_eq(check(), -EACCES);
	OK(begin_again());
	for (int n = 0; n < 3; n++) {
		owned_go(&process, 'E');
		OK(check());
		owned_go(&process, 'e');
		OK(check());
	}
	owners_check_all(&b.modules.targets);
	ck_assert(run_is_open(i.run));
}

/* A user who is no operator has asked for the process, and may not profile it any more. */
TESTS(what_a_user_has_added_is_left, getuid() == 0 ? 2 : 0)
{
	i.origin = INSTANCE_ATTACHED;
	i.asker = (struct instance_asker){.is_set = true, .is_operator = _i == 1};
	owned_go(&process, 'u');
	ck_assert_int_eq(check(), -EACCES);
	ck_assert_int_eq(i.life, _i == 1 ? INSTANCE_LIVES : INSTANCE_REMOVED);
}

/*
 * A section, --pid or --children wants the process, too: only what the user has asked for ends, so
 * that a stop stays in effect.
 */
static const struct {
	enum instance_origin origin;
	enum instance_wish wish, then;
} known[] = {
	{INSTANCE_OF_SECTION, INSTANCE_WISH_ATTACHED, INSTANCE_WISH_NONE},
	{INSTANCE_GIVEN, INSTANCE_WISH_ATTACHED, INSTANCE_WISH_NONE},
	{INSTANCE_CHILD, INSTANCE_WISH_ATTACHED, INSTANCE_WISH_NONE},
	{INSTANCE_OF_SECTION, INSTANCE_WISH_STOPPED, INSTANCE_WISH_STOPPED},
};

TESTS(what_a_user_has_asked_of_a_known_process_ends, getuid() == 0 ? array_size(known) : 0)
{
	i.origin = known[_i].origin;
	i.wish = known[_i].wish;
	i.is_started = i.wish == INSTANCE_WISH_ATTACHED;
	i.n_recordings = 1;
	i.asker = (struct instance_asker){.is_set = true};
	owned_go(&process, 'u');
	ck_assert_int_eq(check(), -EACCES);
	ck_assert_ptr_eq(told, &i);
	ck_assert_int_eq(i.life, INSTANCE_CHANGED);
	ck_assert_int_eq(i.wish, known[_i].then);
	ck_assert(!i.is_started && !i.asker.is_set);
	/* No run begins with the values of the attach. */
	ck_assert_int_eq(begin_again(), -EACCES);
}

TEST_IF(a_change_before_a_run_begins_counts, getuid() == 0)
{
	i.origin = INSTANCE_RECORDED;
	i.asker = (struct instance_asker){.is_set = true};
	owned_go(&process, 'u');
	ck_assert_int_eq(begin_again(), -EACCES);
	ck_assert_int_eq(i.life, INSTANCE_REMOVED);
}

TEST(a_process_that_has_ended_is_no_change)
{
	OK(kill(process.pid, SIGKILL));
	while (process_is_alive(i.pidfd))
		;
	ck_assert_int_eq(check(), -ESRCH);
	ck_assert(run_is_open(i.run));
	ck_assert_uint_eq(i.owner_changes, 0);
}
