/* Environments in which LeakSanitizer is switched off, or is loaded. */
#include "daemon/process/leak_options.h"

#include "tests/unit/suite.h"

static const struct {
	const char *asan, *lsan;
	bool asan_off, lsan_off;
} values[] = {
	{NULL, NULL, false, false},
	{"", "", false, false},
	{"detect_leaks=0", NULL, true, false},
	{NULL, "detect_leaks=0", true, true},
	{"detect_leaks=false", "detect_leaks=no", true, true},
	{"detect_leaks=1", NULL, false, false},
	/* The last one counts, and LSAN_OPTIONS comes after ASAN_OPTIONS. */
	{"detect_leaks=0:detect_leaks=1", NULL, false, false},
	{"detect_leaks=1:detect_leaks=0", NULL, true, false},
	{"detect_leaks=0", "detect_leaks=1", false, false},
	{"detect_leaks=1", "detect_leaks=0", true, true},
	/* All separators; quoted values. */
	{":x=1,detect_leaks=0 y=2", NULL, true, false},
	{"x=1\tdetect_leaks=0\ny=2", NULL, true, false},
	{"x=1\r detect_leaks=0,,", NULL, true, false},
	{"detect_leaks='0'", "detect_leaks=\"0\":x=1", true, true},
	{"log_path='a:detect_leaks=0'", NULL, false, false},
	{"log_path='a b':detect_leaks=0", NULL, true, false},
	{"log_path=\"a", NULL, false, false},
	/* Other names and values. */
	{"xdetect_leaks=0", "detect_leaksx=0", false, false},
	{"detect_leaks=00", "detect_leaks=0x", false, false},
	{"detect_leaks=", "detect_leaks", false, false},
	{"DETECT_LEAKS=0", "detect_leaks= 0", false, false},
	/* The sanitizers end the process here. */
	{"verbose detect_leaks=0", NULL, false, false},
};

TESTS(the_last_detect_leaks_counts, array_size(values))
{
	struct leak_options found;

	leak_options_read(values[_i].asan, values[_i].lsan, NULL, &found);
	ck_assert_int_eq(found.asan_off, values[_i].asan_off);
	ck_assert_int_eq(found.lsan_off, values[_i].lsan_off);
	ck_assert_int_eq(found.preloads, FILE_LEAKS_NONE);
	ck_assert_int_eq(leak_options_are_off(&found, FILE_LEAKS_ASAN), values[_i].asan_off);
	ck_assert_int_eq(leak_options_are_off(&found, FILE_LEAKS_LSAN), values[_i].lsan_off);
	ck_assert(leak_options_are_off(&found, FILE_LEAKS_NONE));
}

static const struct {
	const char *value;
	enum file_leaks leaks;
} preloads[] = {
	{"libasan.so", FILE_LEAKS_ASAN},
	{"/usr/lib/x86_64-linux-gnu/libasan.so.8", FILE_LEAKS_ASAN},
	{"/a/libx.so:/b/libclang_rt.asan-x86_64.so", FILE_LEAKS_ASAN},
	{"/a/libx.so liblsan.so.0", FILE_LEAKS_LSAN},
	{"", FILE_LEAKS_NONE},
	{"::  ", FILE_LEAKS_NONE},
	{"/libasan.so/libx.so", FILE_LEAKS_NONE},
	{"libtsan.so.2:libxasan.so", FILE_LEAKS_NONE},
	{"libasan.s", FILE_LEAKS_NONE},
};

TESTS(a_preloaded_runtime_is_found, array_size(preloads))
{
	struct leak_options found;

	leak_options_read(NULL, NULL, preloads[_i].value, &found);
	ck_assert_int_eq(found.preloads, preloads[_i].leaks);
}

#define ENVIRON(text, ret) leak_options_of_environ(text, sizeof(text) - 1, ret)

TEST(an_environment_is_read)
{
	struct leak_options found;

	ENVIRON("A=1\0ASAN_OPTIONS=detect_leaks=0\0B=2\0", &found);
	ck_assert(found.asan_off && !found.lsan_off);
	ENVIRON("XASAN_OPTIONS=detect_leaks=0\0LSAN_OPTIONS=detect_leaks=0\0", &found);
	ck_assert(found.asan_off && found.lsan_off);
	/* The first variable of a name counts, as for getenv(3). */
	ENVIRON("LSAN_OPTIONS=detect_leaks=1\0LSAN_OPTIONS=detect_leaks=0\0", &found);
	ck_assert(!found.lsan_off);
	ENVIRON("LD_PRELOAD=libasan.so\0", &found);
	ck_assert_int_eq(found.preloads, FILE_LEAKS_ASAN);
	/* Without a NUL at the end; nothing at all. */
	ENVIRON("ASAN_OPTIONS=detect_leaks=0", &found);
	ck_assert(found.asan_off);
	ENVIRON("ASAN_OPTIONS", &found);
	ck_assert(!found.asan_off);
	leak_options_of_environ("", 0, &found);
	ck_assert(!found.asan_off && !found.lsan_off);
}
