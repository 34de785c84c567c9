#include "daemon/common/degraded_kind.h"

#include <linux/capability.h>
#include <string.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

#define ALL UINT64_MAX

static enum degraded_kind found[DEGRADED_N];

static size_t find(struct degraded_kind_facts facts)
{
	return degraded_kind_find(&facts, found);
}

static size_t without(capability_set set)
{
	return find((struct degraded_kind_facts){.have = ALL & ~set});
}

TEST(each_missing_capability_is_a_kind)
{
	static const struct {
		int number;
		enum degraded_kind kind;
	} each[] = {
		{CAP_SYS_PTRACE, DEGRADED_SYS_PTRACE},
		{CAP_SETUID, DEGRADED_SETUID},
		{CAP_SETGID, DEGRADED_SETGID},
		{CAP_CHECKPOINT_RESTORE, DEGRADED_CHECKPOINT_RESTORE},
		{CAP_KILL, DEGRADED_KILL},
		{CAP_SYS_NICE, DEGRADED_SYS_NICE},
	};

	ck_assert_uint_eq(without(0), 0);
	for (size_t i = 0; i < array_size(each); i++) {
		ck_assert_uint_eq(without(CAPABILITY(each[i].number)), 1);
		ck_assert_int_eq(found[0], each[i].kind);
	}
}

/* Without the others the profiles have less, or come later. */
TEST(promises_are_broken_without_separation_and_kills)
{
	const capability_set safety =
		CAPABILITY(CAP_SETUID) | CAPABILITY(CAP_SETGID) | CAPABILITY(CAP_KILL);
	const struct degraded_kind_facts facts[] = {
		{.have = ALL & ~CAPABILITY(CAP_SETUID)},
		{.have = ALL & ~CAPABILITY(CAP_SETGID)},
		{.have = ALL & ~CAPABILITY(CAP_KILL)},
		{.have = ALL, .no_getfd = true},
	};

	for (size_t i = 0; i < array_size(facts); i++) {
		ck_assert_uint_eq(find(facts[i]), 1);
		ck_assert(degraded_kind_texts[found[0]].breaks_promise);
	}
	for (size_t i = find((struct degraded_kind_facts){.have = safety}); i > 0; i--)
		ck_assert(!degraded_kind_texts[found[i - 1]].breaks_promise);
}

TEST(one_of_the_two_capabilities_to_read_files_suffices)
{
	ck_assert_uint_eq(without(CAPABILITY(CAP_DAC_READ_SEARCH)), 0);
	ck_assert_uint_eq(without(CAPABILITY(CAP_DAC_OVERRIDE)), 0);
	ck_assert_uint_eq(without(CAPABILITY(CAP_DAC_READ_SEARCH) | CAPABILITY(CAP_DAC_OVERRIDE)),
			  1);
	ck_assert_int_eq(found[0], DEGRADED_READ_SEARCH);
}

/* A daemon that cannot change its user can signal all of its children without CAP_KILL. */
TEST(cap_kill_is_needed_only_with_cap_setuid)
{
	ck_assert_uint_eq(without(CAPABILITY(CAP_SETUID) | CAPABILITY(CAP_KILL)), 1);
	ck_assert_int_eq(found[0], DEGRADED_SETUID);
}

TEST(capabilities_without_effect_in_a_user_namespace_are_kinds)
{
	ck_assert_uint_eq(
		find((struct degraded_kind_facts){.have = ALL, .in_user_namespace = true}), 2);
	ck_assert_int_eq(found[0], DEGRADED_CHECKPOINT_RESTORE);
	ck_assert_int_eq(found[1], DEGRADED_SYS_NICE);
	for (size_t i = 0; i < 2; i++)
		HAS(degraded_kind_texts[found[i]].remedy, "a rootless container");
}

TEST(the_gravest_kinds_are_first)
{
	const size_t n = find(
		(struct degraded_kind_facts){.have = 0, .no_getfd = true, .no_schedstat = true});

	/* All capabilities but CAP_KILL, which is needed only with CAP_SETUID. */
	ck_assert_uint_eq(n, DEGRADED_SYS_NICE - DEGRADED_SYS_PTRACE + 2);
	for (size_t i = 1; i < n; i++)
		ck_assert_int_lt(found[i - 1], found[i]);
	ck_assert_int_eq(found[n - 2], DEGRADED_SCHEDSTAT);
	ck_assert_int_eq(found[n - 1], DEGRADED_GETFD);
}

TEST(each_kind_has_its_texts)
{
	for (size_t i = 0; i < DEGRADED_N; i++) {
		const struct degraded_kind_text *l = &degraded_kind_texts[i];

		ck_assert(l->id[0] != '\0' && l->name[0] != '\0' && l->effect[0] != '\0' &&
			  l->remedy[0] != '\0');
		for (size_t k = 0; k < i; k++)
			ck_assert_str_ne(l->id, degraded_kind_texts[k].id);
	}
}
