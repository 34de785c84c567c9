#include "daemon/common/limitation.h"

#include <linux/capability.h>
#include <string.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

#define ALL UINT64_MAX

static struct limitation found[LIMITATIONS_MAX];

static size_t find(struct limitation_facts facts)
{
	const size_t n = limitation_find(&facts, found);

	ck_assert_uint_le(n, LIMITATIONS_MAX);
	for (size_t i = 0; i < n; i++)
		ck_assert(found[i].name[0] != '\0' && found[i].effect[0] != '\0' &&
			  found[i].remedy[0] != '\0');
	return n;
}

static size_t without(capability_set set)
{
	return find((struct limitation_facts){.have = ALL & ~set});
}

TEST(each_missing_capability_is_a_limitation)
{
	static const struct {
		int number;
		const char *name;
	} each[] = {
		{CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
		{CAP_SETUID, "CAP_SETUID"},
		{CAP_SETGID, "CAP_SETGID"},
		{CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE"},
		{CAP_KILL, "CAP_KILL"},
		{CAP_SYS_NICE, "CAP_SYS_NICE"},
	};

	ck_assert_uint_eq(without(0), 0);
	for (size_t i = 0; i < array_size(each); i++) {
		ck_assert_uint_eq(without(CAPABILITY(each[i].number)), 1);
		ck_assert_str_eq(found[0].name, each[i].name);
	}
}

/* Without the others the profiles have less, or come later. */
TEST(promises_are_broken_without_separation_and_kills)
{
	const capability_set safety =
		CAPABILITY(CAP_SETUID) | CAPABILITY(CAP_SETGID) | CAPABILITY(CAP_KILL);
	const struct limitation_facts facts[] = {
		{.have = ALL & ~CAPABILITY(CAP_SETUID)},
		{.have = ALL & ~CAPABILITY(CAP_SETGID)},
		{.have = ALL & ~CAPABILITY(CAP_KILL)},
		{.have = ALL, .no_getfd = true},
	};

	for (size_t i = 0; i < array_size(facts); i++) {
		ck_assert_uint_eq(find(facts[i]), 1);
		ck_assert(found[0].breaks_promise);
	}
	for (size_t i = find((struct limitation_facts){.have = safety, .no_connector = true});
	     i > 0; i--)
		ck_assert(!found[i - 1].breaks_promise);
}

TEST(one_of_the_two_capabilities_to_read_files_suffices)
{
	ck_assert_uint_eq(without(CAPABILITY(CAP_DAC_READ_SEARCH)), 0);
	ck_assert_uint_eq(without(CAPABILITY(CAP_DAC_OVERRIDE)), 0);
	ck_assert_uint_eq(without(CAPABILITY(CAP_DAC_READ_SEARCH) | CAPABILITY(CAP_DAC_OVERRIDE)),
			  1);
	ck_assert_str_eq(found[0].name, "CAP_DAC_READ_SEARCH");
}

/* A daemon that cannot change its user can signal all of its children without CAP_KILL. */
TEST(cap_kill_is_needed_only_with_cap_setuid)
{
	ck_assert_uint_eq(without(CAPABILITY(CAP_SETUID) | CAPABILITY(CAP_KILL)), 1);
	ck_assert_str_eq(found[0].name, "CAP_SETUID");
}

TEST(capabilities_without_effect_in_a_user_namespace_are_limitations)
{
	ck_assert_uint_eq(find((struct limitation_facts){.have = ALL, .in_user_namespace = true}),
			  2);
	ck_assert_str_eq(found[0].name, "CAP_CHECKPOINT_RESTORE");
	ck_assert_str_eq(found[1].name, "CAP_SYS_NICE");
	for (size_t i = 0; i < 2; i++)
		HAS(found[i].remedy, "user namespace");
}

TEST(all_limitations_fit_into_the_result)
{
	const size_t n =
		find((struct limitation_facts){.have = 0, .no_getfd = true, .no_connector = true});

	/* All but CAP_KILL, which is needed only with CAP_SETUID. */
	ck_assert_uint_eq(n, LIMITATIONS_MAX - 1);
	ck_assert_str_eq(found[0].name, "CAP_SYS_PTRACE");
	ck_assert_str_eq(found[n - 2].name, "pidfd_getfd(2)");
	ck_assert_str_eq(found[n - 1].name, "proc connector");
}
