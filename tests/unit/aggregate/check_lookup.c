#include "lib/aggregate/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/aggregate/fake_unwind.h"
#include "tests/unit/suite.h"

static const uint8_t id_a[20] = {0xaa, 1}, id_b[20] = {0xbb, 2};

/* The application, libc, a library without an id, the vDSO. */
static const struct fake_image images[] = {
	{0x10000,
	 0x20000,
	 {.path = "/opt/app",
	  .id = id_a,
	  .id_size = 20,
	  .addr = 0xf000,
	  .vmaddr = 0x1000,
	  .size = 0x11000}},
	{0x70000,
	 0x80000,
	 {.path = "/usr/lib/libc.so.6",
	  .id = id_b,
	  .id_size = 20,
	  .addr = 0x70000,
	  .size = 0x10000}},
	{0x30000,
	 0x40000,
	 {.path = "/opt/plug\xffin.so", .addr = 0x30000, .size = 0x10000}},
	{0x90000,
	 0x92000,
	 {.path = "[vdso]",
	  .id = id_b,
	  .id_size = 20,
	  .addr = 0x90000,
	  .size = 0x2000}},
};

static const struct fake_symbol symbols[] = {
	{0x10000, 0x10100, "main"},
	{0x10100, 0x10200, "_ZN3app4workEv"},
	{0x10200, 0x10300,
	 "b\xfe"
	 "ad"},
	{0x10300, 0x10400, ""},
	{0x90000, 0x90100, "__vdso_clock_gettime"},
};

static struct unwind_space space;
static struct stacks s;
static struct lookup l;

static void set_up(void)
{
	space = (struct unwind_space){
		.images = images,
		.n_images = array_size(images),
		.symbols = symbols,
		.n_symbols = array_size(symbols),
	};
	stacks_init(&s, 0);
	lookup_init(&l, 0);
}

static void tear_down(void)
{
	stacks_fini(&s);
	lookup_fini(&l);
}

/* A stack of n addresses, leaf first. */
static void add(size_t n, const uint64_t *addrs)
{
	struct unwind_frame frames[8];
	uint32_t node;

	for (size_t i = 0; i < n; i++)
		frames[i] = (struct unwind_frame){addrs[i], i == 0, 0};
	ck_assert_int_eq(stacks_add(&s, frames, n, &node), 0);
}
#define ADD(...)                                                  \
	add(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), \
	    (uint64_t[]){__VA_ARGS__})

static void finish(void)
{
	ck_assert_int_eq(lookup_update(&l, &s, &space, "/opt/app"), 0);
	ck_assert(!space.in_use);
	ck_assert_int_eq(lookup_finish(&l, &s, &space), 0);
	ck_assert_uint_eq(l.n_frames, s.n_frames);
}

static const struct profile_frame *frame_at(uint64_t addr)
{
	for (size_t i = 0; i < l.n_frames; i++)
		if (l.frames[i].addr == addr)
			return &l.frames[i];
	ck_abort_msg("no frame");
	return NULL;
}

static void check_frame(uint64_t addr, const char *function,
			const char *package, bool in_app)
{
	const struct profile_frame *f = frame_at(addr);

	if (function == NULL)
		ck_assert_ptr_null(f->function);
	else
		ck_assert_str_eq(f->function, function);
	if (package == NULL)
		ck_assert_ptr_null(f->package);
	else
		ck_assert_str_eq(f->package, package);
	ck_assert_int_eq(f->in_app, in_app);
}

/* A return address at the end of a function belongs to that function. */
START_TEST(caller_is_looked_up_one_byte_before)
{
	ADD(0x10100, 0x10100, 0x10080, 0x10040);
	finish();
	ck_assert_uint_eq(l.n_frames, 4);
	for (size_t i = 0; i < 4; i++)
		if (s.frames[i].addr == 0x10100)
			ck_assert_str_eq(l.frames[i].function,
					 s.frames[i].is_leaf ? "_ZN3app4workEv"
							     : "main");
}
END_TEST

START_TEST(frames)
{
	ADD(0x10150, 0x7abcd, 0x10290, 0x10390, 0x30020, 0x90010, 0x10040,
	    0x10050);
	ADD(0x50000, 0x10040, 0x10050);
	finish();
	check_frame(0x10150, "_ZN3app4workEv", "/opt/app", true);
	check_frame(0x7abcd, NULL, "/usr/lib/libc.so.6", false);
	check_frame(0x10290,
		    "b\xef\xbf\xbd"
		    "ad",
		    "/opt/app", true);
	check_frame(0x10390, NULL, "/opt/app", true);
	check_frame(0x30020, NULL, "/opt/plug\xef\xbf\xbdin.so", true);
	check_frame(0x90010, "__vdso_clock_gettime", "[vdso]", false);
	check_frame(0x50000, NULL, NULL, false);
	/* The same string is kept once. */
	ck_assert_ptr_eq(frame_at(0x10150)->package,
			 frame_at(0x10390)->package);
}
END_TEST

/* Root and next to it are named in any case; further in they are not. */
START_TEST(names_near_the_root)
{
	ADD(0x15500, 0x15600, 0x7724a, 0x77305);
	ADD(0x15700, 0x15800);
	ADD(0x15900);
	ADD(0x60000, 0x61000);
	ADD(0x10110, 0x10040, 0x77500);
	finish();
	check_frame(0x15500, NULL, "/opt/app", true);
	check_frame(0x15600, NULL, "/opt/app", true);
	check_frame(0x7724a, "libc.so.6+0x724a", "/usr/lib/libc.so.6", false);
	check_frame(0x77305, "libc.so.6+0x7305", "/usr/lib/libc.so.6", false);
	check_frame(0x15700, "app+0x6700", "/opt/app", false);
	check_frame(0x15800, "app+0x6800", "/opt/app", false);
	check_frame(0x15900, "app+0x6900", "/opt/app", false);
	check_frame(0x60000, "unknown+0x60000", NULL, false);
	check_frame(0x61000, "unknown+0x61000", NULL, false);
	/* Those with a symbol keep it, and their in_app. */
	check_frame(0x10040, "main", "/opt/app", true);
}
END_TEST

START_TEST(images_used)
{
	ADD(0x10150, 0x30020, 0x7abcd, 0x7abd0, 0x10040);
	finish();
	/* By address; the one without an id is left out. */
	ck_assert_uint_eq(l.n_profile_images, 2);
	ck_assert_str_eq(l.profile_images[0].code_file, "/opt/app");
	ck_assert_uint_eq(l.profile_images[0].addr, 0xf000);
	ck_assert_uint_eq(l.profile_images[0].vmaddr, 0x1000);
	ck_assert_uint_eq(l.profile_images[0].size, 0x11000);
	ck_assert_uint_eq(l.profile_images[0].id_size, 20);
	ck_assert_mem_eq(l.profile_images[0].id, id_a, 20);
	ck_assert_str_eq(l.profile_images[1].code_file, "/usr/lib/libc.so.6");
	ck_assert_mem_eq(l.profile_images[1].id, id_b, 20);
}
END_TEST

/* One reaches into the next, two start at the same place, one never ends. */
START_TEST(images_that_overlap)
{
	static const struct fake_image overlapping[] = {
		{0x1000,
		 0x2000,
		 {.path = "/small",
		  .id = id_a,
		  .id_size = 20,
		  .addr = 0x1000,
		  .size = 0x800}},
		{0x2000,
		 0x3000,
		 {.path = "/large",
		  .id = id_a,
		  .id_size = 20,
		  .addr = 0x1000,
		  .size = 0x9000}},
		{0x3000,
		 0x4000,
		 {.path = "/small2",
		  .id = id_a,
		  .id_size = 20,
		  .addr = 0x1000,
		  .size = 0x700}},
		{0x5000,
		 0x6000,
		 {.path = "/next",
		  .id = id_b,
		  .id_size = 20,
		  .addr = 0x5000,
		  .size = UINT64_MAX}},
	};

	space.images = overlapping;
	ADD(0x5500, 0x1500, 0x2500, 0x3500);
	finish();
	ck_assert_uint_eq(l.n_profile_images, 2);
	ck_assert_str_eq(l.profile_images[0].code_file, "/large");
	ck_assert_uint_eq(l.profile_images[0].size, 0x4000);
	ck_assert_str_eq(l.profile_images[1].code_file, "/next");
	ck_assert_uint_eq(l.profile_images[1].size, UINT64_MAX - 0x5000);
}
END_TEST

/* Each frame is asked about once, however often the chunk is looked at. */
START_TEST(only_new_frames)
{
	ADD(0x10150, 0x10040);
	finish();
	ck_assert_uint_eq(space.lookups, 2);
	ADD(0x10160, 0x10040);
	finish();
	ck_assert_uint_eq(space.lookups, 3);
	ck_assert_str_eq(frame_at(0x10160)->function, "_ZN3app4workEv");
}
END_TEST

START_TEST(demangled)
{
	l.demangle = true;
	ADD(0x10150, 0x90010, 0x10040, 0x10050);
	finish();
	check_frame(0x10150, "N3app4workEv()", "/opt/app", true);
	check_frame(0x90010, "__vdso_clock_gettime", "[vdso]", false);
	/* In the next chunk, too. */
	lookup_fini(&l);
	finish();
	check_frame(0x10150, "N3app4workEv()", "/opt/app", true);
}
END_TEST

/* A target whose names are endless gets a chunk without them. */
START_TEST(budget)
{
	static char name[4001];
	const struct fake_symbol endless = {0, UINT64_MAX, name};
	size_t bytes = 0, named = 0;

	memset(name, '\n', sizeof(name) - 1);
	space.symbols = &endless;
	space.n_symbols = 1;
	for (uint64_t i = 0; i < 5000; i++)
		ADD(0x10000 + i, 0x10000 + i, 0x10000 + i);
	finish();
	for (size_t i = 0; i < l.n_frames; i++) {
		const char *f = l.frames[i].function;

		named += f != NULL;
		if (f != NULL)
			bytes += strlen(f) * (f[0] == '\n' ? 6 : 1);
		if (l.frames[i].package != NULL)
			bytes += strlen(l.frames[i].package);
		/* Near the root there is still one. */
		ck_assert(f != NULL || !s.frames[i].near_root);
	}
	ck_assert_uint_gt(named, 0);
	ck_assert_uint_gt(bytes, LOOKUP_PAYLOAD_MAX / 2);
	ck_assert_uint_lt(bytes, LOOKUP_PAYLOAD_MAX + 10000 * 40);
}
END_TEST

Suite *suite(void)
{
	Suite *suite = suite_create("lookup");
	TCase *c = tcase_create("lookup");

	tcase_add_checked_fixture(c, set_up, tear_down);
	tcase_add_test(c, caller_is_looked_up_one_byte_before);
	tcase_add_test(c, frames);
	tcase_add_test(c, names_near_the_root);
	tcase_add_test(c, images_used);
	tcase_add_test(c, images_that_overlap);
	tcase_add_test(c, only_new_frames);
	tcase_add_test(c, demangled);
	tcase_add_test(c, budget);
	suite_add_tcase(suite, c);
	return suite;
}
