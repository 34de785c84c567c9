#include "daemon/unwind/program.h"

#include <string.h>

#include "tests/unit/suite.h"

#define ENDED_NS 1000

static const char text[] = "1000-2000 r-xp 00000000 08:01 7 /bin/program\n";

static struct msg_session_open open_message;
static struct program p;

/* Makes a program whose newest early file came at early_file_ns. */
static void set_up(uint64_t early_file_ns)
{
	static const struct unwind_cache_options options = {.hash_seed = 1};
	struct unwind_cache *cache;

	OK(unwind_cache_new(&options, &cache));
	p = (struct program){
		.open = &open_message,
		.has_maps = true,
		.early_file_ns = early_file_ns,
		.identity_ns = early_file_ns,
	};
	OK(unwind_space_new(cache, NULL, NULL, &p.space));
	OK(unwind_space_set_maps(p.space, text, strlen(text)));
	buf_init(&p.identity.exe, 100);
	buf_init(&p.identity.cmdline, 100);
	OK(buf_add_string(&p.identity.exe, "/bin/program"));
	OK(buf_add_string(&p.identity.cmdline, "program"));
	buf_init(&p.identity.command_line, 100);
	OK(buf_add_string(&p.identity.command_line, "program -x"));
	memcpy(p.release, "program@1", sizeof("program@1"));
	memcpy(p.environment, "lab", sizeof("lab"));
}

static bool is_known(void)
{
	return unwind_space_covers(p.space, 0x1000);
}

TEST(a_program_keeps_early_files_that_came_before_its_end)
{
	set_up(ENDED_NS);
	ck_assert(program_ended(&p, ENDED_NS));
	ck_assert(is_known());
	ck_assert_str_eq(buf_string(&p.identity.cmdline), "program");
	ck_assert_str_eq(program_command_line(&p), "program -x");
	ck_assert_str_eq(program_release(&p), "program@1");
	ck_assert_str_eq(program_environment(&p), "lab");
}

TEST(a_program_loses_early_files_that_came_after_its_end)
{
	set_up(ENDED_NS + 1);
	ck_assert(!program_ended(&p, ENDED_NS));
	ck_assert(!is_known());
	ck_assert_str_eq(buf_string(&p.identity.exe), "");
	ck_assert_str_eq(buf_string(&p.identity.cmdline), "");
	ck_assert_ptr_null(program_command_line(&p));
	ck_assert_str_eq(program_release(&p), "unknown");
}

/* So the table of programs names it, although its functions have no names. */
TEST(a_program_keeps_an_identity_that_came_before_its_end)
{
	set_up(ENDED_NS + 1);
	p.identity_ns = ENDED_NS;
	ck_assert(program_ended(&p, ENDED_NS));
	ck_assert(!is_known());
	ck_assert_str_eq(buf_string(&p.identity.exe), "/bin/program");
	ck_assert_str_eq(program_release(&p), "unknown");
}

TEST(a_release_of_the_user_stays_without_the_early_files)
{
	memcpy(open_message.release_env, "ours@2", sizeof("ours@2"));
	memcpy(open_message.environment, "ours", sizeof("ours"));
	set_up(ENDED_NS + 1);
	ck_assert(!program_ended(&p, ENDED_NS));
	ck_assert_str_eq(program_release(&p), "ours@2");
	ck_assert_str_eq(program_environment(&p), "ours");
}

/* The maps were read at this time, and not for the first time. */
#define READ_NS (10 * NS_PER_SEC)

static void set_up_maps(void)
{
	static const struct unwind_cache_options options = {.hash_seed = 1};
	static struct unwind_cache *cache;

	unwind_space_free(p.space);
	unwind_cache_free(cache);
	p = (struct program){
		.has_maps = true,
		.maps_read_ns = READ_NS,
		.maps_first_ns = READ_NS - 2 * MAPS_MISS_NS,
	};
	OK(unwind_cache_new(&options, &cache));
	OK(unwind_space_new(cache, NULL, NULL, &p.space));
}

/*
 * Counts samples: the last one ns after the reading of the maps, the others just before. Returns
 * true if the maps are due at the last one.
 */
static bool are_due(uint64_t samples, uint64_t ns)
{
	for (uint64_t i = 1; i < samples; i++)
		ck_assert(!program_maps_due(&p, READ_NS + ns - 1));
	return program_maps_due(&p, READ_NS + ns);
}

TEST(after_many_samples_maps_are_due_after_5_seconds)
{
	set_up_maps();
	ck_assert(are_due(MAPS_SAMPLES, MAPS_EVERY_NS));
	/* They stay due until they are read. */
	ck_assert(program_maps_due(&p, READ_NS + MAPS_EVERY_NS));
	set_up_maps();
	ck_assert(!program_maps_due(&p, READ_NS + MAPS_EVERY_NS));
}

TEST(after_few_samples_maps_are_due_after_20_seconds)
{
	set_up_maps();
	ck_assert(!are_due(MAPS_SAMPLES - 1, MAPS_EVERY_NS));
	ck_assert(program_maps_due(&p, READ_NS + MAPS_EVERY_NS));
	set_up_maps();
	ck_assert(!program_maps_due(&p, READ_NS + MAPS_SELDOM_NS - 1));
	ck_assert(program_maps_due(&p, READ_NS + MAPS_SELDOM_NS));
}

TEST(after_a_miss_maps_are_due_after_200_ms)
{
	set_up_maps();
	ck_assert(!program_maps_due_after_miss(&p, READ_NS + MAPS_MISS_NS - 1));
	ck_assert(program_maps_due_after_miss(&p, READ_NS + MAPS_MISS_NS));
}

/* It maps its libraries after its first sample. */
TEST(after_a_miss_the_maps_of_a_young_program_are_due_earlier)
{
	static const uint64_t cost_ns = 1 * NS_PER_MS;
	uint64_t now_ns = READ_NS;
	unsigned int n = 0;

	set_up_maps();
	p.maps_first_ns = READ_NS;
	ck_assert(!program_maps_due_after_miss(&p, READ_NS));
	ck_assert(program_maps_due_after_miss(&p, READ_NS + 1));
	p.maps_cost_ns = cost_ns;
	ck_assert(!program_maps_due_after_miss(&p, READ_NS + MAPS_YOUNG_COST * cost_ns - 1));
	ck_assert(program_maps_due_after_miss(&p, READ_NS + MAPS_YOUNG_COST * cost_ns));
	/* Each sample of a second misses. */
	for (; now_ns < READ_NS + NS_PER_SEC; now_ns += NS_PER_MS)
		if (program_maps_due_after_miss(&p, now_ns)) {
			p.maps_read_ns = now_ns;
			n++;
		}
	ck_assert_uint_le(n, 15);
	ck_assert_uint_ge(n, 10);
	ck_assert(!program_maps_due_after_miss(&p, p.maps_read_ns + MAPS_MISS_NS - 1));
	/* Its maps could not be read. */
	p.maps_first_ns = p.maps_read_ns;
	p.has_maps = false;
	ck_assert(!program_maps_due_after_miss(&p, p.maps_read_ns + MAPS_MISS_NS - 1));
}

TEST(a_program_without_maps_gets_them_at_its_first_sample_and_then_as_after_a_miss)
{
	p = (struct program){.has_maps = false};
	ck_assert(program_maps_due(&p, READ_NS));
	p.maps_read_ns = READ_NS;
	ck_assert(!program_maps_due(&p, READ_NS + MAPS_MISS_NS - 1));
	ck_assert(program_maps_due(&p, READ_NS + MAPS_MISS_NS));
}

TEST(after_a_reading_that_took_long_maps_are_due_later)
{
	static const uint64_t cost_ns = MAPS_EVERY_NS / 10;

	set_up_maps();
	p.maps_cost_ns = cost_ns;
	ck_assert(!program_maps_due_after_miss(&p, READ_NS + MAPS_COST * cost_ns - 1));
	ck_assert(program_maps_due_after_miss(&p, READ_NS + MAPS_COST * cost_ns));
	ck_assert(!are_due(MAPS_SAMPLES, MAPS_EVERY_NS));
	ck_assert(program_maps_due(&p, READ_NS + MAPS_COST * cost_ns));
	p.has_maps = false;
	ck_assert(!program_maps_due(&p, READ_NS + MAPS_COST * cost_ns - 1));
	/* However long it took. */
	p.maps_cost_ns = MAPS_SELDOM_NS;
	ck_assert(program_maps_due(&p, READ_NS + MAPS_SELDOM_NS));
}
