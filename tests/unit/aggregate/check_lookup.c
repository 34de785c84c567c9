#include "lib/aggregate/lookup.h"

#include <string.h>

#include "tests/unit/aggregate/fake_unwind.h"
#include "tests/unit/suite.h"

static const uint8_t id_a[20] = {0xaa, 1}, id_b[20] = {0xbb, 2};

/* An image that is found from start to end, and whose own start is at. */
#define IMAGE(start, end, name, of, at, bytes)                                           \
	{                                                                                \
		start, end,                                                              \
		{                                                                        \
			.path = name, .id = of, .id_size = 20, .addr = at, .size = bytes \
		}                                                                        \
	}

/* The images: the application, libc, a library without an id, the vDSO. */
static const struct fake_image images[] = {
	{0x10000,
	 0x20000,
	 {.path = "/opt/app",
	  .id = id_a,
	  .id_size = 20,
	  .has_build_id = true,
	  .addr = 0xf000,
	  .vmaddr = 0x1000,
	  .size = 0x11000}},
	IMAGE(0x70000, 0x80000, "/usr/lib/libc.so.6", id_b, 0x70000, 0x10000),
	{0x30000, 0x40000, {.path = "/opt/plug\xffin.so", .addr = 0x30000, .size = 0x10000}},
	IMAGE(0x90000, 0x92000, "[vdso]", id_b, 0x90000, 0x2000),
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

/* The plugin has no symbols; libc has symbols of some functions only. */
static const struct fake_function functions[] = {
	{0x30000, 0x30100}, {0x77200, 0x77300}, {0x79000, 0x79100},
	{0x90100, 0x90200}, {0x91f00, 0x92000},
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
		.functions = functions,
		.n_functions = array_size(functions),
	};
	stacks_init(&s, 0);
	lookup_init(&l, 0);
	l.name_by_start = true;
}

static void tear_down(void)
{
	stacks_fini(&s);
	lookup_fini(&l);
}

/* Adds a stack of n addresses, leaf first. */
static void add(size_t n, const uint64_t *addrs)
{
	struct unwind_frame frames[8];
	uint32_t node;

	for (size_t i = 0; i < n; i++)
		frames[i] = (struct unwind_frame){addrs[i], i == 0, 0};
	OK(stacks_add(&s, PROFILE_NONE, frames, n, &node));
}
#define ADD(...) \
	add(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})

static void finish(void)
{
	OK(lookup_update(&l, &s, &space, "/opt/app"));
	ck_assert(!space.in_use);
	OK(lookup_finish(&l, &s, &space));
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

static void check_frame(uint64_t addr, const char *function, const char *package, bool in_app)
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

FIXTURE(set_up, tear_down)

/* A return address at the end of a function belongs to that function. */
TEST(caller_is_looked_up_one_byte_before)
{
	ADD(0x10100, 0x10100, 0x10080, 0x10040);
	finish();
	ck_assert_uint_eq(l.n_frames, 4);
	for (size_t i = 0; i < 4; i++)
		if (s.frames[i].addr == 0x10100)
			ck_assert_str_eq(l.frames[i].function,
					 s.frames[i].is_leaf ? "_ZN3app4workEv" : "main");
}

TEST(names_packages_and_in_app)
{
	ADD(0x10150, 0x7abcd, 0x10290, 0x10390, 0x30020, 0x90010, 0x10040, 0x10050);
	ADD(0x50000, 0x10040, 0x10050);
	finish();
	check_frame(0x10150, "_ZN3app4workEv", "/opt/app", true);
	check_frame(0x7abcd, NULL, "/usr/lib/libc.so.6", false);
	check_frame(0x10290,
		    "b\xef\xbf\xbd"
		    "ad",
		    "/opt/app", true);
	check_frame(0x10390, NULL, "/opt/app", true);
	check_frame(0x30020, "plug\xef\xbf\xbdin.so+0x0", "/opt/plug\xef\xbf\xbdin.so", true);
	check_frame(0x90010, "__vdso_clock_gettime", "[vdso]", false);
	check_frame(0x50000, NULL, NULL, false);
	/* Equal strings are stored once. */
	ck_assert_ptr_eq(frame_at(0x10150)->package, frame_at(0x10390)->package);
}

/*
 * The root and the frame next to it are always named. Frames further in are named only if an FDE
 * covers them.
 */
TEST(names_near_the_root)
{
	ADD(0x15500, 0x15600, 0x7724a, 0x77305);
	ADD(0x15700, 0x15800);
	ADD(0x15900);
	ADD(0x60000, 0x61000);
	ADD(0x10110, 0x10040, 0x77500);
	finish();
	check_frame(0x15500, NULL, "/opt/app", true);
	check_frame(0x15600, NULL, "/opt/app", true);
	check_frame(0x7724a, "libc.so.6+0x7200", "/usr/lib/libc.so.6", false);
	check_frame(0x77305, "libc.so.6+0x7305", "/usr/lib/libc.so.6", false);
	check_frame(0x15700, "app+0x6700", "/opt/app", false);
	check_frame(0x15800, "app+0x6800", "/opt/app", false);
	check_frame(0x15900, "app+0x6900", "/opt/app", false);
	check_frame(0x60000, "unknown+0x60000", NULL, false);
	check_frame(0x61000, "unknown+0x61000", NULL, false);
	/* Frames with a symbol keep its name and their in_app. */
	check_frame(0x10040, "main", "/opt/app", true);
}

/* All addresses of a function without a symbol get the same name. */
TEST(functions_without_a_symbol)
{
	ADD(0x79000, 0x30050, 0x90180, 0x91fff, 0x92000, 0x10040, 0x10050);
	ADD(0x79000, 0x30102, 0x7abcd, 0x10040, 0x10050);
	ADD(0x790ff, 0x30099, 0x90101, 0x30100, 0x10040, 0x10050);
	finish();
	check_frame(0x79000, "libc.so.6+0x9000", "/usr/lib/libc.so.6", false);
	check_frame(0x790ff, "libc.so.6+0x9000", "/usr/lib/libc.so.6", false);
	check_frame(0x30050, "plug\xef\xbf\xbdin.so+0x0", "/opt/plug\xef\xbf\xbdin.so", true);
	ck_assert_str_eq(frame_at(0x30099)->function, frame_at(0x30050)->function);
	ck_assert_str_eq(frame_at(0x30100)->function, frame_at(0x30050)->function);
	check_frame(0x90180, "[vdso]+0x100", "[vdso]", false);
	check_frame(0x90101, "[vdso]+0x100", "[vdso]", false);
	check_frame(0x91fff, "[vdso]+0x1f00", "[vdso]", false);
	check_frame(0x92000, "[vdso]+0x1f00", "[vdso]", false);
	/* No FDE covers these addresses. */
	check_frame(0x30102, NULL, "/opt/plug\xef\xbf\xbdin.so", true);
	check_frame(0x7abcd, NULL, "/usr/lib/libc.so.6", false);
}

/* Without name_by_start only frames that need a name have one. */
TEST(functions_without_a_symbol_stay_unnamed)
{
	l.name_by_start = false;
	l.by_function = true;
	ADD(0x79010, 0x30050, 0x7724a, 0x77205);
	finish();
	check_frame(0x79001, NULL, "/usr/lib/libc.so.6", false);
	check_frame(0x30001, NULL, "/opt/plug\xef\xbf\xbdin.so", true);
	check_frame(0x77201, "libc.so.6+0x7200", "/usr/lib/libc.so.6", false);
}

/* A frame without a symbol near the root is not in_app, not even in a file of the application. */
TEST(functions_without_a_symbol_near_the_root)
{
	ADD(0x30060, 0x30050, 0x30040);
	finish();
	check_frame(0x30060, "plug\xef\xbf\xbdin.so+0x0", "/opt/plug\xef\xbf\xbdin.so", true);
	check_frame(0x30050, "plug\xef\xbf\xbdin.so+0x0", "/opt/plug\xef\xbf\xbdin.so", false);
	check_frame(0x30040, "plug\xef\xbf\xbdin.so+0x0", "/opt/plug\xef\xbf\xbdin.so", false);
}

/* By function, leaves and callers have the address just after the function's start. */
TEST(addresses_by_function)
{
	static const uint64_t expected[] = {0x10101, 0x10101, 0x10001, 0x10001,
					    0x30001, 0x79001, 0x7abcd};
	static const uint64_t addrs[] = {0x10150, 0x10200, 0x10100, 0x10042,
					 0x30100, 0x79080, 0x7abcd};

	l.by_function = true;
	add(7, addrs);
	finish();
	for (size_t i = 0; i < l.n_frames; i++)
		for (size_t k = 0; k < array_size(addrs); k++)
			if (s.frames[i].addr == addrs[k])
				ck_assert_uint_eq(l.frames[i].addr, expected[k]);
	check_frame(0x79001, "libc.so.6+0x9000", "/usr/lib/libc.so.6", false);
	/* Checks the same in the next chunk. */
	lookup_fini(&l);
	finish();
	(void)frame_at(0x79001);
}

/* By function, file and line are those of the function's start. */
TEST(sources_by_function)
{
	static const struct fake_lines lines[] = {
		{0x10000, 0x10001, 1, {{"main", "/a.c", 1}}},
		{0x10001, 0x10080, 2, {{"in", "/in.h", 5}, {"main", "/a.c", 2}}},
		{0x10101, 0x10200, 1, {{"work", "/b.c", 9}}},
	};

	space.lines = lines;
	space.n_lines = array_size(lines);
	l.by_function = true;
	ADD(0x10110, 0x10040);
	ADD(0x10000, 0x10040);
	finish();
	for (size_t i = 0; i < l.n_frames; i++) {
		const struct profile_frame *f = &l.frames[i];

		if (f->addr != 0x10001) {
			ck_assert_ptr_null(f->file);
			continue;
		}
		ck_assert_str_eq(f->file, "/a.c");
		ck_assert_uint_eq(f->line, 1);
	}
	/* An inlined function has a file, but no line, which would make frames differ. */
	ck_assert_uint_eq(l.n_inlined, 1);
	ck_assert_uint_eq(l.inlined[0].addr, 0x10001);
	ck_assert_str_eq(l.inlined[0].file, "/in.h");
	ck_assert_uint_eq(l.inlined[0].line, 0);
}

/* The frames stay as they are without lines; l.lines has the lines and the inlined functions. */
TEST(lines_for_files)
{
	static const struct fake_lines lines[] = {
		{0x10000, 0x10080, 2, {{"in", "/in.h", 5}, {"main", "/a.c", 2}}},
		{0x10101, 0x10200, 1, {{"work", "/b.c", 9}}},
	};
	size_t seen = 0;

	space.lines = lines;
	space.n_lines = array_size(lines);
	l.lines_for_files = true;
	l.inlined_for_files = true;
	ADD(0x10110, 0x10040);
	finish();
	for (size_t i = 0; i < l.n_frames; i++) {
		const bool is_main = l.frames[i].addr == 0x10040;

		seen += is_main;
		ck_assert_ptr_null(l.frames[i].file);
		ck_assert_uint_eq(l.frames[i].line, 0);
		ck_assert_str_eq(l.lines[i].file, is_main ? "/a.c" : "/b.c");
		ck_assert_uint_eq(l.lines[i].line, is_main ? 2 : 9);
		ck_assert_uint_eq(l.lines[i].n, is_main);
		if (!is_main)
			continue;
		ck_assert_str_eq(l.inlined[l.lines[i].first].function, "in");
		ck_assert_str_eq(l.inlined[l.lines[i].first].file, "/in.h");
		ck_assert_uint_eq(l.inlined[l.lines[i].first].line, 5);
		ck_assert_str_eq(l.inlined[l.lines[i].first].package, "/opt/app");
	}
	ck_assert_uint_eq(seen, 1);
}

/* What only files have takes no room from what the server gets. */
TEST(lines_for_files_have_a_limit_of_their_own)
{
	static char file[4001];
	const struct fake_lines endless = {0, UINT64_MAX, 2, {{file, file, 1}, {"f", file, 1}}};
	size_t with_file = 0, named = 0;

	memset(file, '\n', sizeof(file) - 1);
	space.lines = &endless;
	space.n_lines = 1;
	l.lines_for_files = true;
	l.inlined_for_files = true;
	for (uint64_t i = 0; i < 200; i++)
		ADD(0x10001 + i, 0x10001 + i, 0x10001 + i);
	finish();
	for (size_t i = 0; i < l.n_frames; i++) {
		with_file += l.lines[i].file != NULL;
		named += l.frames[i].function != NULL && l.frames[i].package != NULL;
	}
	ck_assert_uint_gt(with_file, 0);
	ck_assert_uint_lt(with_file, l.n_frames);
	ck_assert_uint_eq(named, l.n_frames);
	ck_assert_uint_le(l.file_payload_bytes, LOOKUP_FILE_PAYLOAD_MAX);
	ck_assert_uint_gt(l.file_payload_bytes, LOOKUP_FILE_PAYLOAD_MAX / 2);
}

TEST(images_of_the_profile)
{
	ADD(0x10150, 0x30020, 0x7abcd, 0x7abd0, 0x10040);
	finish();
	/* The images are sorted by address. The image without an id is left out. */
	ck_assert_uint_eq(l.n_profile_images, 2);
	ck_assert_str_eq(l.profile_images[0].code_file, "/opt/app");
	ck_assert_uint_eq(l.profile_images[0].addr, 0xf000);
	ck_assert_uint_eq(l.profile_images[0].vmaddr, 0x1000);
	ck_assert_uint_eq(l.profile_images[0].size, 0x11000);
	ck_assert_uint_eq(l.profile_images[0].id_size, 20);
	ck_assert(l.profile_images[0].has_build_id);
	ck_assert_mem_eq(l.profile_images[0].id, id_a, 20);
	ck_assert_str_eq(l.profile_images[1].code_file, "/usr/lib/libc.so.6");
	ck_assert_mem_eq(l.profile_images[1].id, id_b, 20);
	ck_assert(!l.profile_images[1].has_build_id);
}

/* One image reaches into the next, two start at the same address, and one has no end. */
TEST(overlapping_images)
{
	static const struct fake_image overlapping[] = {
		IMAGE(0x1000, 0x2000, "/small", id_a, 0x1000, 0x800),
		IMAGE(0x2000, 0x3000, "/large", id_a, 0x1000, 0x9000),
		IMAGE(0x3000, 0x4000, "/small2", id_a, 0x1000, 0x700),
		IMAGE(0x5000, 0x6000, "/next", id_b, 0x5000, UINT64_MAX),
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

/* Each frame is looked up once, however often lookup_update() is called. */
TEST(frames_are_looked_up_once)
{
	ADD(0x10150, 0x10040);
	finish();
	ck_assert_uint_eq(space.lookups, 2);
	ADD(0x10160, 0x10040);
	finish();
	ck_assert_uint_eq(space.lookups, 3);
	ck_assert_str_eq(frame_at(0x10160)->function, "_ZN3app4workEv");
}

TEST(demangled_names)
{
	l.demangle = true;
	ADD(0x10150, 0x90010, 0x10040, 0x10050);
	finish();
	check_frame(0x10150, "N3app4workEv()", "/opt/app", true);
	check_frame(0x90010, "__vdso_clock_gettime", "[vdso]", false);
	/* Checks the same in the next chunk. */
	lookup_fini(&l);
	finish();
	check_frame(0x10150, "N3app4workEv()", "/opt/app", true);
}

/* A target with very long names gets a chunk without most of them. */
TEST(strings_above_the_limit)
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
		/* Frames near the root still have a name. */
		ck_assert(f != NULL || !s.frames[i].near_root);
	}
	ck_assert_uint_gt(named, 0);
	ck_assert_uint_gt(bytes, LOOKUP_PAYLOAD_MAX / 2);
	ck_assert_uint_lt(bytes, LOOKUP_PAYLOAD_MAX + 10000 * 40);
}
