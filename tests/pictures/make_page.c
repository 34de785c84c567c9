/*
 * Profiles for the tests of the page (proto/export/html/html.h), made up.
 *
 *   make_page known >FILE.html     a process of which the test knows all
 *   make_page two >FILE.html       it, and another process for a tenth longer
 *   make_page compare >FILE.html   it and a run of twice the time in which
 *                                  <script> took from parse_json
 *   make_page ready >FILE.html     the known one, on a machine with too few processors
 *   make_page only-ready >FILE.html
 *                                  of it the ready time, as by --state ready
 *   make_page compare-ready >FILE.html
 *                                  both runs on it
 *   make_page old >FILE.html       the known one, by a profiler that did not tell
 *                                  ready from waiting
 *   make_page stateless >FILE.html the known one, by a profiler that told no states
 *   make_page names >FILE.html     the known one, in which parse_json and <script> have
 *                                  long names that differ in one argument, and
 *                                  handle_request one without brackets
 *   make_page programs >FILE.html  501 processes of cc1, one of which ended before its build was
 *                                  read; two of unknown programs; one that executes make after sh
 *   make_page many SAMPLES THREADS SECONDS html|json >FILE
 *                                  random stacks, the same for the same numbers
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/export/compare.h"
#include "proto/export/html/html.h"

#define TICK_NS	       UINT64_C(10000000)
#define FIRST_TICKS    UINT64_C(1000)
#define SECOND_TICKS   UINT64_C(2000)
#define START_NS       UINT64_C(1790000000000000000)
#define MANY_FUNCTIONS 3000u
#define MANY_STACKS    20000u
#define MANY_DEPTH_MAX 40u

static void check(int r)
{
	if (r == 0)
		return;
	fprintf(stderr, "make_page: %s\n", strerror(-r));
	exit(1);
}

static void *array(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (p == NULL)
		check(-ENOMEM);
	return p;
}

/* Known profile. */

static struct import_frame known_frames[] = {
	{0x401100, "main", "/opt/shop/bin/shop", "/src/shop/main.c", 12, true},
	{0x401250, "handle_request", "/opt/shop/bin/shop", "/src/shop/http.c", 88, true},
	{0x401460, "parse_json", "/opt/shop/lib/libjson.so.1", "/src/json/parse.c", 301, true},
	{0x401472, "parse_json", "/opt/shop/lib/libjson.so.1", "/src/json/parse.c", 307, true},
	{0x401800, "<script>alert(1)</script>", "/opt/shop/bin/shop", "/src/<b>shop</b>.c", 5,
	 true},
	{0x7f0000012345, "__poll", "/usr/lib/x86_64-linux-gnu/libc.so.6", NULL, 0, false},
	{0x7f0000023456, "start_thread", "/usr/lib/x86_64-linux-gnu/libc.so.6", NULL, 0, false},
	{0x7f0000034567, NULL, "/usr/lib/x86_64-linux-gnu/libz.so.1", NULL, 0, false},
	{0x402000,
	 "std::vector<std::pair<std::string, int>, "
	 "std::allocator<std::pair<std::string, int> > "
	 ">::_M_realloc_insert(int const&)",
	 "/opt/shop/bin/shop", "/usr/include/c++/12/bits/vector.tcc", 439, true},
};

/* A name of 1,200 characters, twelve times the width of the tip. */
#define SIDE                                                                                      \
	"std::pair<shop::Customer const, std::vector<shop::Order, std::allocator<shop::Order> > " \
	">, "
#define FOUR SIDE SIDE SIDE SIDE
#define LONG_NAME(key) \
	"shop::Index<" FOUR FOUR FOUR "std::set<" key ", std::less<" key "> > >::find(int) const"

static void make_long_names(void)
{
	static char without_brackets[2000];

	known_frames[2].function = known_frames[3].function = LONG_NAME("long");
	known_frames[4].function = LONG_NAME("double");
	for (size_t i = 0; i + 1 < sizeof(without_brackets); i++)
		without_brackets[i] = "long_name_of_c_"[i % 15];
	known_frames[1].function = without_brackets;
}

/* Leaf first. */
static uint32_t known_stack_frames[] = {
	2, 1, 0,    /* 0: parse_json */
	3, 1, 0,    /* 1: parse_json, its other address */
	4, 1, 0,    /* 2: <script> */
	5, 0,	    /* 3: __poll in main */
	7, 8, 1, 6, /* 4: a worker compresses */
	5, 6,	    /* 5: __poll in a worker */
	1, 0,	    /* 6: handle_request itself */
};
static size_t known_stack_starts[] = {0, 3, 6, 9, 11, 15, 17, 19};

static struct import_thread known_threads[] = {
	{"4242", "main"},
	{"4243", "worker (4243)"},
	{"4244", "<img src=x onerror=alert(1)>"},
};

/*
 * On a machine with too few processors: of ten ticks the main thread is ready in the third and in
 * the fifth, and a worker in the last one of its three ticks in libz. In the first run the main
 * thread is then between two ticks of <script> in handle_request itself.
 */
static bool has_ready;
static bool lacks_states; /* by a profiler that told no states */
static bool hides_ready;  /* by a profiler that did not tell ready from waiting */

static enum profile_state known_state(uint32_t thread, uint64_t turn, uint32_t stack)
{
	if (lacks_states)
		return PROFILE_RUNNING;
	if (stack == 3 || stack == 5)
		return PROFILE_WAITING;
	if (has_ready && (thread == 0 ? turn == 2 || turn == 4 : turn == 6))
		return PROFILE_READY;
	return PROFILE_RUNNING;
}

/*
 * Ten seconds. Of ten ticks the main thread has three of parse_json (two
 * addresses), two of <script>, one of handle_request itself, and waits for
 * four. The workers run for one tick and for three of ten. In the second run,
 * of twice the time, parse_json has one of ten ticks, and <script> four.
 */
static void known_sample(struct import_chunk *c, uint64_t ticks, uint64_t tick, uint32_t thread)
{
	static const uint32_t turns[5][10] = {
		{0, 0, 1, 2, 2, 6, 3, 3, 3, 3}, {4, 5, 5, 5, 5, 5, 5, 5, 5, 5},
		{5, 5, 5, 5, 4, 4, 4, 5, 5, 5}, {0, 2, 2, 2, 2, 6, 3, 3, 3, 3},
		{0, 0, 1, 2, 6, 2, 3, 3, 3, 3},
	};
	const uint32_t main_turn = ticks == SECOND_TICKS ? 3 : has_ready ? 4 : 0;
	const uint32_t stack = turns[thread == 0 ? main_turn : thread][tick / 10 % 10];

	c->samples[c->n_samples++] = (struct import_sample){
		.time_ns = START_NS + tick * TICK_NS,
		.duration_ns = tick == ticks ? 0 : TICK_NS,
		.thread = thread,
		.stack = stack,
		.state = known_state(thread, tick / 10 % 10, stack),
		.is_last = tick == ticks,
	};
}

static void add_known(struct merge *m, const char *profiler_id, const char *release,
		      const char *command_line, uint64_t ticks)
{
	struct import_chunk c = {
		.profiler_id = profiler_id,
		.chunk_id = "0123456789abcdef0123456789abcdef",
		.command_line = command_line,
		.frames = known_frames,
		.n_frames = sizeof(known_frames) / sizeof(known_frames[0]),
		.stack_starts = known_stack_starts,
		.stack_frames = known_stack_frames,
		.n_stacks = 7,
		.threads = known_threads,
		.n_threads = 3,
		.has_states = !lacks_states,
		.hides_ready = hides_ready,
		.samples = array(3 * (ticks + 1), sizeof(struct import_sample)),
		.payload = json_pack("{s:s, s:s, s:s}", "release", release, "platform", "native",
				     "environment", "production"),
	};

	for (uint64_t tick = 0; tick <= ticks; tick++)
		for (uint32_t thread = 0; thread < c.n_threads; thread++)
			known_sample(&c, ticks, tick, thread);
	check(merge_add(m, &c));
	json_decref(c.payload);
	free(c.samples);
}

static void add_programs(struct merge *m)
{
	char id[PROFILE_ID_SIZE], command_line[200];

	add_known(m, "ffeeddccbbaa99887766554433221100", "sh@1", NULL, 100);
	add_known(m, "ffeeddccbbaa99887766554433221100", "make@2", "make -j2", 200);
	/* Their programs had ended before they were read. */
	add_known(m, "eeffddccbbaa99887766554433221100", "cc1@unknown", NULL, 20);
	add_known(m, "eeffddccbbaa99887766554433221101", "unknown@unknown", NULL, 20);
	add_known(m, "eeffddccbbaa99887766554433221102", "unknown", NULL, 20);
	for (unsigned int i = 0; i < 500; i++) {
		(void)snprintf(id, sizeof(id), "%032x", i);
		(void)snprintf(command_line, sizeof(command_line), "/usr/lib/cc1 -o %u.s %0150u.c",
			       i, i);
		add_known(m, id, "cc1@3", command_line, 20);
	}
}

/* Many samples. */

static uint64_t state = 88172645463325252u;

/* xorshift64, Marsaglia 2003. */
static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) * below >> 32);
}

static void make_frames(struct import_chunk *c)
{
	static const char *modules[] = {
		"/opt/app/bin/server",	    "/usr/lib/libc.so.6",      "/usr/lib/libssl.so.3",
		"/opt/app/lib/libquery.so", "/usr/lib/libstdc++.so.6",
	};

	c->n_frames = MANY_FUNCTIONS;
	c->frames = array(MANY_FUNCTIONS, sizeof(struct import_frame));
	for (uint32_t i = 0; i < MANY_FUNCTIONS; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "module_%u::function_%u(int)", i % 37, i);
		c->frames[i] = (struct import_frame){
			.addr = 0x400000 + UINT64_C(16) * i,
			.function = strdup(name),
			.package = modules[i % 5],
			.file = "/src/app/a_file_of_the_app.cc",
			.line = i,
			.in_app = i % 5 == 0 || i % 5 == 3,
		};
	}
}

/* A stack is another one's outer part and something new, as in a program. */
static void make_stacks(struct import_chunk *c)
{
	size_t at = 0;

	c->n_stacks = MANY_STACKS;
	c->stack_starts = array(MANY_STACKS + 1, sizeof(size_t));
	c->stack_frames = array((size_t)MANY_STACKS * MANY_DEPTH_MAX, sizeof(uint32_t));
	for (uint32_t i = 0; i < MANY_STACKS; i++) {
		const uint32_t like = i > 0 ? draw(i) : 0;
		const size_t first = c->stack_starts[like];
		const size_t depth = i > 0 ? c->stack_starts[like + 1] - first : 0;
		const size_t shared = depth > 2 ? depth - draw(3) : depth;
		size_t more = 1 + draw(i < 10 ? 12 : 4);

		if (shared + more > MANY_DEPTH_MAX)
			more = MANY_DEPTH_MAX - shared;
		for (size_t k = 0; k < more; k++)
			c->stack_frames[at++] = draw(MANY_FUNCTIONS);
		memcpy(c->stack_frames + at, c->stack_frames + first + depth - shared,
		       shared * sizeof(uint32_t));
		at += shared;
		c->stack_starts[i + 1] = at;
	}
}

/* Ticks come a little late, each by its own time. */
static uint64_t tick_time(uint64_t tick, uint64_t tick_ns)
{
	const uint64_t late = tick * 2654435761u % 1000;

	return START_NS + tick * tick_ns + tick_ns / 2000 * late / 1000 * 1000;
}

static void make_samples(struct import_chunk *c, size_t n, size_t threads, uint64_t duration_ns)
{
	const size_t ticks = n / threads;
	const uint64_t tick_ns = duration_ns / ticks / 1000 * 1000;

	c->n_threads = threads;
	c->threads = array(threads, sizeof(struct import_thread));
	for (size_t t = 0; t < threads; t++) {
		char id[16], name[32];

		(void)snprintf(id, sizeof(id), "%zu", 1000 + t);
		(void)snprintf(name, sizeof(name), "worker (%zu)", 1000 + t);
		c->threads[t] = (struct import_thread){strdup(id), strdup(name)};
	}
	c->has_states = true;
	c->n_samples = ticks * threads;
	c->samples = array(c->n_samples, sizeof(struct import_sample));
	for (size_t i = 0; i < c->n_samples; i++) {
		static const enum profile_state states[] = {PROFILE_WAITING, PROFILE_READY,
							    PROFILE_RUNNING, PROFILE_RUNNING};
		const uint32_t a = draw(MANY_STACKS), b = draw(MANY_STACKS);

		c->samples[i] = (struct import_sample){
			.time_ns = tick_time(i / threads, tick_ns),
			.duration_ns = tick_time(i / threads + 1, tick_ns) -
				       tick_time(i / threads, tick_ns),
			.thread = (uint32_t)(i % threads),
			.stack = a < b ? a : b, /* some are hot */
			.state = states[draw(4)],
			.is_last = i / threads == ticks - 1,
		};
		if (c->samples[i].is_last)
			c->samples[i].duration_ns = 0;
	}
}

static void print_json(const struct import_chunk *c)
{
	printf("{\"version\":\"2\",\"profile\":{\"frames\":[");
	for (size_t i = 0; i < c->n_frames; i++)
		printf("%s{\"instruction_addr\":\"0x%" PRIx64
		       "\",\"in_app\":%s,\"function\":\"%s\",\"package\":\"%"
		       "s\","
		       "\"abs_path\":\"%s\",\"lineno\":%u}",
		       i > 0 ? "," : "", c->frames[i].addr, c->frames[i].in_app ? "true" : "false",
		       c->frames[i].function, c->frames[i].package, c->frames[i].file,
		       c->frames[i].line);
	printf("],\"stacks\":[");
	for (size_t i = 0; i < c->n_stacks; i++) {
		printf(i > 0 ? ",[" : "[");
		for (size_t k = c->stack_starts[i]; k < c->stack_starts[i + 1]; k++)
			printf("%s%u", k > c->stack_starts[i] ? "," : "", c->stack_frames[k]);
		printf("]");
	}
	printf("],\"samples\":[");
	for (size_t i = 0; i < c->n_samples; i++)
		printf("%s{\"timestamp\":%" PRIu64 ".%06" PRIu64
		       ",\"thread_id\":\"%s\",\"stack_id\":%u%s}",
		       i > 0 ? "," : "", c->samples[i].time_ns / NS_PER_SEC,
		       c->samples[i].time_ns % NS_PER_SEC / NS_PER_US,
		       c->threads[c->samples[i].thread].id, c->samples[i].stack,
		       c->samples[i].state == PROFILE_WAITING ? PROFILE_STATE_WAITING
		       : c->samples[i].state == PROFILE_READY ? PROFILE_STATE_READY
							      : "");
	printf("]}}\n");
}

static int write_comparison(void)
{
	static const char *const names[] = {"before", "after <b>"};
	const struct merge_options options = {.keep_extra = true, .until_ns = UINT64_MAX};
	struct compare c;
	const struct export_options export = {.version = "test", .comparison = &c};
	struct merge m;

	merge_init(&m, &options);
	add_known(&m, "00112233445566778899aabbccddeeff", "shop@1.4.2", NULL, FIRST_TICKS);
	m.side = 1;
	add_known(&m, "00112233445566778899aabbccddeeff", "shop@1.5.0", NULL, SECOND_TICKS);
	check(merge_finish(&m));
	check(compare_init(&c, &m, names, NULL, 0));
	check(export_html(&m, &export, stdout));
	compare_fini(&c);
	merge_fini(&m);
	return 0;
}

static bool is_called(int argc, char **argv, const char *what)
{
	return argc == 2 && strcmp(argv[1], what) == 0;
}

int main(int argc, char **argv)
{
	struct merge_options options = {
		.is_ordered = true, .keep_extra = true, .until_ns = UINT64_MAX};
	const struct export_options export = {.version = "test"};
	struct import_chunk c = {
		.profiler_id = "00112233445566778899aabbccddeeff",
		.chunk_id = "0123456789abcdef0123456789abcdef",
	};
	struct merge m;

	if (is_called(argc, argv, "only-ready"))
		options.states = MERGE_READY;
	has_ready = is_called(argc, argv, "ready") || is_called(argc, argv, "compare-ready") ||
		    options.states == MERGE_READY;
	hides_ready = is_called(argc, argv, "old");
	lacks_states = is_called(argc, argv, "stateless");
	if (is_called(argc, argv, "compare") || is_called(argc, argv, "compare-ready"))
		return write_comparison();
	merge_init(&m, &options);
	if (is_called(argc, argv, "names"))
		make_long_names();
	if (is_called(argc, argv, "known") || is_called(argc, argv, "names") ||
	    is_called(argc, argv, "two") || has_ready || hides_ready || lacks_states) {
		add_known(&m, "00112233445566778899aabbccddeeff", "shop@1.4.2", NULL, FIRST_TICKS);
		if (is_called(argc, argv, "two"))
			add_known(&m, "ffeeddccbbaa99887766554433221100", "batch@7", NULL,
				  FIRST_TICKS + 100);
	} else if (is_called(argc, argv, "programs")) {
		add_programs(&m);
	} else if (argc == 6 && strcmp(argv[1], "many") == 0) {
		make_frames(&c);
		make_stacks(&c);
		make_samples(&c, strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10),
			     strtoul(argv[4], NULL, 10) * NS_PER_SEC);
		if (strcmp(argv[5], "json") == 0) {
			print_json(&c);
			return 0;
		}
		c.payload = json_pack("{s:s}", "release", "server@2.0.0");
		check(merge_add(&m, &c));
	} else {
		fprintf(stderr,
			"usage: make_page known|two|compare|ready|only-ready|compare-ready|old|"
			"stateless|names|programs\n"
			"       make_page many SAMPLES THREADS SECONDS "
			"html|json\n");
		return 2;
	}
	check(merge_finish(&m));
	check(export_html(&m, &export, stdout));
	merge_fini(&m);
	return 0;
}
