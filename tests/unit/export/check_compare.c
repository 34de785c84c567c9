#include "proto/export/compare.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/export/made_chunks.h"
#include "tests/unit/suite.h"

static struct merge m;
static struct compare c;

static void set_up(void)
{
	const struct merge_options options = {.until_ns = UINT64_MAX};

	merge_init(&m, &options);
}

static void tear_down(void)
{
	compare_fini(&c);
	merge_fini(&m);
}

/* The main program of each side, and the name of its function f. */
static const char *mains[COMPARE_SIDES] = {"/bin/program", "/bin/program"};
static const char *functions[COMPARE_SIDES] = {"f", "f"};

static unsigned int process;

/*
 * Adds a chunk of a module at path, of this build, loaded at base. It has a function "f" at base +
 * 0x10, a function without a name at base + 0x20, and at base + 0x30 a function with the name that
 * the daemon gives to a function without a symbol. Stacks: 0: f, 1: f;0x20, 2: f;0x30.
 */
static void add(unsigned int side, const char *path, const char *build, unsigned int base,
		const char *samples)
{
	const char *name = merge_base(path);
	char text[MADE_SIZE];

	m.side = side;
	(void)snprintf(text, sizeof(text),
		       "{\"version\":\"2\",\"profiler_id\":\"p%u\",\"chunk_id\":\"c\","
		       "\"platform\":\"native\",\"debug_meta\":{\"images\":[{"
		       "\"code_file\":\"%s\",\"image_addr\":\"0x100\",\"image_size\":256},{"
		       "\"code_file\":\"%s\",\"debug_id\":\"%s\",\"image_addr\":"
		       "\"0x%x\",\"image_size\":4096}]},\"profile\":{\"frames\":["
		       "{\"instruction_addr\":\"0x%x\",\"function\":\"%s\","
		       "\"package\":\"%s\"},"
		       "{\"instruction_addr\":\"0x%x\",\"package\":\"%s\"},"
		       "{\"instruction_addr\":\"0x%x\",\"function\":\"%s+0x30\","
		       "\"package\":\"%s\"}],"
		       "\"stacks\":[[0],[1,0],[2,0]],\"samples\":[%s],"
		       "\"thread_metadata\":{}}}",
		       process, mains[side], path, build, base, base + 0x10, functions[side], path,
		       base + 0x20, path, base + 0x30, name, path, samples);
	made_read(&m, text);
}

static void compare_by(const struct compare_pair *pairs, size_t n)
{
	static const char *const names[] = {"old", "new"};

	OK(merge_finish(&m));
	OK(compare_init(&c, &m, names, pairs, n));
}

static void compare(void)
{
	compare_by(NULL, 0);
}

/* Checks the seconds of a function on both sides; 0 and 0: there is no such function. */
static void check_function(const char *name, unsigned int a_s, unsigned int b_s)
{
	uint64_t ns[COMPARE_SIDES] = {0};

	for (size_t i = 0; i < c.n_functions; i++) {
		if (strcmp(c.functions[i].name, name) != 0)
			continue;
		ck_assert_msg(ns[0] == 0 && ns[1] == 0, "%s twice", name);
		memcpy(ns, c.functions[i].self_ns, sizeof(ns));
	}
	ck_assert_msg(ns[0] == a_s * NS_PER_SEC && ns[1] == b_s * NS_PER_SEC, "%s: %g s, %g s",
		      name, (double)ns[0] / 1e9, (double)ns[1] / 1e9);
}

static void check_folded(const char *wanted)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(out);
	OK(compare_write_folded(&c, out));
	(void)fclose(out);
	ck_assert_str_eq(text, wanted);
	free(text);
}

/* A: f 1 s, 0x20 1 s, 0x30 2 s. B: f 4 s, 0x20 1 s, 0x30 3 s. */
#define A_SAMPLES                  \
	MADE_RUNS("100", "1", "0") \
	MADE_RUNS("101", "1", "1") \
	MADE_RUNS("102", "1", "2") MADE_END("104", "1", "0")
#define B_SAMPLES                  \
	MADE_RUNS("900", "9", "2") \
	MADE_RUNS("903", "9", "0") \
	MADE_RUNS("907", "9", "1") MADE_END("908", "9", "0")

FIXTURE(set_up, tear_down)

TEST(functions_at_different_addresses_are_the_same)
{
	add(0, "/opt/app", "one", 0x1000, A_SAMPLES);
	add(1, "/opt/app", "one", 0x8000, B_SAMPLES);
	compare();
	ck_assert_uint_eq(c.total_ns[0], 4 * NS_PER_SEC);
	ck_assert_uint_eq(c.total_ns[1], 8 * NS_PER_SEC);
	ck_assert_uint_eq(c.duration_ns[0], 4 * NS_PER_SEC);
	ck_assert_uint_eq(c.duration_ns[1], 8 * NS_PER_SEC);
	check_function("f", 1, 4);
	check_function("app+0x20", 1, 1);
	check_function("app+0x30", 2, 3);
	ck_assert_uint_eq(c.n_functions, 3);
	check_folded("f 250000000 500000000\n"
		     "f;app+0x20 250000000 125000000\n"
		     "f;app+0x30 500000000 375000000\n");
}

/* Because in another build the same offset may be another function. */
TEST(functions_without_a_name_of_two_builds_are_one)
{
	add(0, "/opt/app", "one", 0x1000, A_SAMPLES);
	add(1, "/opt/new/app", "two", 0x1000, B_SAMPLES);
	compare();
	check_function("f", 1, 4);
	check_function("[app]", 3, 4);
	ck_assert_uint_eq(c.n_functions, 2);
	for (size_t i = 0; i < m.n_frames; i++)
		ck_assert_str_eq(m.frames[i].package, "/opt/app");
}

TEST(a_renamed_module_is_the_same_by_its_build)
{
	add(0, "/opt/app", "one", 0x1000, A_SAMPLES);
	add(1, "/opt/app-old", "one", 0x1000, B_SAMPLES);
	compare();
	check_function("f", 1, 4);
	check_function("app+0x20", 1, 1);
	check_function("app+0x30", 2, 3);
	ck_assert_uint_eq(c.n_functions, 3);
}

TEST(other_modules_have_functions_of_their_own)
{
	add(0, "/opt/app", "one", 0x1000, A_SAMPLES);
	add(1, "/opt/other", "two", 0x1000, B_SAMPLES);
	compare();
	ck_assert_uint_eq(c.n_functions, 4); /* f, and the one without a name, of each module */
	check_function("[app]", 3, 0);
	check_function("[other]", 0, 4);
}

/* The profiler_id and the chunk_id are the same on both sides here. */
TEST(a_profile_has_no_difference_to_itself)
{
	add(0, "/opt/app", "one", 0x1000, A_SAMPLES);
	add(1, "/opt/app", "one", 0x1000, A_SAMPLES);
	compare();
	ck_assert_uint_eq(m.n_processes, 2);
	for (size_t i = 0; i < c.n_functions; i++)
		ck_assert_uint_eq(c.functions[i].self_ns[0], c.functions[i].self_ns[1]);
	check_folded("f 250000000 250000000\n"
		     "f;app+0x20 250000000 250000000\n"
		     "f;app+0x30 500000000 500000000\n");
}

TEST(a_side_without_samples_has_no_time)
{
	add(1, "/opt/app", "one", 0x1000, A_SAMPLES);
	compare();
	ck_assert_uint_eq(c.total_ns[0], 0);
	ck_assert_uint_eq(c.duration_ns[0], 0);
	ck_assert(compare_share(&c, 0, 0) <= 0);
	check_folded("f 0 250000000\nf;[app] 0 750000000\n");
}

/* Two builds of a program whose files have different names. */
TEST(the_main_programs_are_the_same)
{
	mains[0] = "/opt/app-1.0";
	mains[1] = "/home/me/build/app";
	add(0, mains[0], "one", 0x1000, A_SAMPLES);
	add(1, mains[1], "two", 0x1000, B_SAMPLES);
	compare();
	check_function("f", 1, 4);
	check_function("[app-1.0]", 3, 4);
	ck_assert_uint_eq(c.n_functions, 2);
}

/* Which of them would be the other side's? */
TEST(several_main_programs_are_not_matched)
{
	mains[0] = "/opt/one";
	add(0, mains[0], "one", 0x1000, A_SAMPLES);
	mains[1] = "/opt/two";
	add(1, mains[1], "two", 0x1000, B_SAMPLES);
	mains[1] = "/opt/three";
	process = 1;
	add(1, mains[1], "three", 0x1000, B_SAMPLES);
	compare();
	ck_assert_uint_eq(c.n_functions, 6);
}

static const struct {
	const char *a, *b, *same;
} copies[] = {
	{"f", "f.part.0", "f"},
	{"f.cold", "f.constprop.1.isra.0", "f"},
	{"f(int) [clone .part.0]", "f(int) [clone .cold]", "f(int)"},
	{"f", "f.llvm.1234567890", "f"},
};

TESTS(parts_and_copies_of_a_function_are_the_same, array_size(copies))
{
	functions[0] = copies[_i].a;
	functions[1] = copies[_i].b;
	add(0, "/opt/app", "one", 0x1000, A_SAMPLES);
	add(1, "/opt/app", "one", 0x1000, B_SAMPLES);
	compare();
	check_function(copies[_i].same, 1, 4);
}

/* A profile of another program may have functions without a package. */
TESTS(parts_of_a_function_without_a_package_are_the_same, array_size(copies))
{
	for (m.side = 0; m.side < COMPARE_SIDES; m.side++) {
		char text[MADE_SIZE];

		(void)snprintf(text, sizeof(text),
			       "{\"version\":\"2\",\"profiler_id\":\"p\",\"chunk_id\":\"c\","
			       "\"platform\":\"native\",\"profile\":{\"frames\":["
			       "{\"function\":\"%s\"}],\"stacks\":[[0]],\"samples\":[" MADE_RUNS(
				       "100", "1", "0")
				       MADE_END("103", "1", "0") "],"
								 "\"thread_metadata\":{}}}",
			       m.side == 0 ? copies[_i].a : copies[_i].b);
		made_read(&m, text);
	}
	compare();
	ck_assert_uint_eq(c.n_functions, 1);
	check_function(copies[_i].same, 3, 3);
}

/* Names in which a dot and digits are no suffix of the compiler. */
static const char *const whole[] = {"f.0",	 ".part.0",	 "part.0",
				    "f.partial", "main.func1.2", "v.12"};

TESTS(other_names_are_not_changed, array_size(whole))
{
	functions[0] = functions[1] = whole[_i];
	add(0, "/opt/app", "one", 0x1000, A_SAMPLES);
	add(1, "/opt/app", "one", 0x1000, B_SAMPLES);
	compare();
	check_function(whole[_i], 1, 4);
}

TEST(versions_of_a_library_are_the_same)
{
	add(0, "/lib/libz.so.1.2.13", "one", 0x1000, A_SAMPLES);
	add(1, "/usr/lib/libz.so.1.3", "two", 0x1000, B_SAMPLES);
	compare();
	check_function("f", 1, 4);
}

TEST(modules_are_the_same_because_the_user_says_so)
{
	const struct compare_pair pairs[] = {{"libold.so", "libnew.so"}};

	add(0, "/opt/libold.so", "one", 0x1000, A_SAMPLES);
	add(1, "/opt/libnew.so", "two", 0x1000, B_SAMPLES);
	compare_by(pairs, 1);
	check_function("f", 1, 4);
	ck_assert_uint_eq(c.n_functions, 2);
}
