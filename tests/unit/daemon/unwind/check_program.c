#include "daemon/unwind/program.h"

#include <string.h>

#include "tests/unit/suite.h"

#define ENDED_NS 1000

static const char text[] = "1000-2000 r-xp 00000000 08:01 7 /bin/program\n";
static const char other[] = "1000-2000 r-xp 00000000 08:01 8 /bin/other\n";

static struct msg_session_open open_message;
static struct program p;

/* Its first files came at told_ns. */
static void set_up(uint64_t told_ns)
{
	static const struct unwind_cache_options options = {.hash_seed = 1};
	struct unwind_cache *cache;

	OK(unwind_cache_new(&options, &cache));
	p = (struct program){.open = &open_message, .has_maps = true, .told_ns = told_ns};
	OK(unwind_space_new(cache, NULL, NULL, &p.space));
	OK(unwind_space_set_maps(p.space, text, strlen(text)));
	buf_init(&p.runs.exe, 100);
	buf_init(&p.runs.cmdline, 100);
	OK(buf_add_string(&p.runs.exe, "/bin/program"));
	OK(buf_add_string(&p.runs.cmdline, "program"));
	memcpy(p.release, "program@1", sizeof("program@1"));
	memcpy(p.environment, "lab", sizeof("lab"));
}

/* Has it a mapping, which another one would take away? */
static bool is_known(void)
{
	bool remapped;

	OK(unwind_space_would_remap(p.space, other, strlen(other), &remapped));
	return remapped;
}

TEST(files_that_came_in_time_are_its_own)
{
	set_up(ENDED_NS);
	program_ended(&p, ENDED_NS);
	ck_assert(is_known());
	ck_assert_str_eq(buf_string(&p.runs.cmdline), "program");
	ck_assert_str_eq(program_release(&p), "program@1");
	ck_assert_str_eq(program_environment(&p), "lab");
}

TEST(files_that_came_later_are_another_s)
{
	set_up(ENDED_NS + 1);
	program_ended(&p, ENDED_NS);
	ck_assert(!is_known());
	ck_assert_str_eq(buf_string(&p.runs.exe), "");
	ck_assert_str_eq(buf_string(&p.runs.cmdline), "");
	ck_assert_str_eq(program_release(&p), "unknown");
}

TEST(what_our_user_said_is_true_of_both)
{
	memcpy(open_message.release_env, "ours@2", sizeof("ours@2"));
	memcpy(open_message.environment, "ours", sizeof("ours"));
	set_up(ENDED_NS + 1);
	program_ended(&p, ENDED_NS);
	ck_assert_str_eq(program_release(&p), "ours@2");
	ck_assert_str_eq(program_environment(&p), "ours");
}
