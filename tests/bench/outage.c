/*
 * outage: simulates the load of a server by its hosts after an outage, and when all hosts start
 * at the same time. Uses the daemon's own backoff (lib/ship/retry.h) and a simulated clock, so
 * that every run has the same figures. Prints Markdown.
 *
 * Each host makes a chunk a minute. Hosts do not affect each other, and the server accepts every
 * chunk, so the hosts are simulated one after the other.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ship/spooler.h"
#include "lib/ship/retry.h"
#include "tests/unit/random.h"

#define HOSTS	    10000
#define CHUNK_NS    (60 * NS_PER_SEC)
#define USUAL	    (HOSTS / 60.0) /* chunks per second without an outage */
#define SECONDS_MAX 4000

/* How hosts retry, and how they send the chunks of the spool. */
enum rule {
	RULE_DAEMON,	   /* as sentry-profd does */
	RULE_SHORT_PAUSES, /* the shortest pause between two chunks of the spool */
	RULE_NO_RANDOM,	   /* waits that double, without a random part */
	RULE_EVERY_SECOND, /* a retry every second, no pause between chunks of the spool */
	RULES
};

static const char *const rule_names[RULES] = {
	"as in sentry-profd", "spool sent at ten chunks a second", "retries without a random part",
	"retry every second, spool sent without pauses"};

/* The sums over all hosts, for each second from the moment at which the server is back. */
struct arrivals {
	unsigned int chunks[SECONDS_MAX];
	unsigned int hosts[SECONDS_MAX];   /* hosts whose first chunk has arrived */
	unsigned int drained[SECONDS_MAX]; /* hosts whose last chunk of the spool has arrived */
	unsigned int failed;		   /* attempts in the last minute of the outage */
};

struct host {
	enum rule rule;
	uint64_t *random;
	uint64_t back_ns; /* when the server is back */
	uint64_t end_ns;
	uint64_t chunk_ns; /* when the next new chunk is made */
	uint64_t next_ns;  /* when the next chunk of the spool is due */
	struct retry retry;
	unsigned int waiting; /* chunks in the spool */
	bool has_met;	      /* a chunk has arrived at the server */
	struct arrivals *arrivals;
};

static void fail(struct host *h, uint64_t now_ns)
{
	uint64_t random = random_next(h->random);

	if (h->back_ns - now_ns <= 60 * NS_PER_SEC)
		h->arrivals->failed++;
	/* retry_failed() takes random modulo the longest wait plus 1, so this is the longest. */
	if (h->rule == RULE_NO_RANDOM)
		random = min_u64(RETRY_FIRST_NS << min_u64(h->retry.failures, 16), RETRY_MAX_NS);
	retry_failed(&h->retry, now_ns, RETRY_MAX_NS, random);
	if (h->rule == RULE_EVERY_SECOND)
		h->retry.until_ns = now_ns + NS_PER_SEC;
	h->next_ns = h->retry.until_ns;
}

static uint64_t pause_ns(const struct host *h)
{
	const uint64_t span_ns = h->waiting > 0 ? (h->waiting - 1) * CHUNK_NS : 0;

	if (h->rule == RULE_EVERY_SECOND)
		return 0;
	if (h->rule == RULE_SHORT_PAUSES)
		return RETRY_PAUSE_MIN_NS;
	return retry_pause_ns(h->waiting, span_ns, random_next(h->random));
}

static void arrive(struct host *h, uint64_t now_ns)
{
	uint64_t second = (now_ns - h->back_ns) / NS_PER_SEC;

	if (second < SECONDS_MAX) {
		h->arrivals->chunks[second]++;
		h->arrivals->hosts[second] += !h->has_met;
	}
	h->has_met = true;
	retry_succeeded(&h->retry);
	h->next_ns = now_ns + pause_ns(h);
}

/* Sends a chunk, new or of the spool. Returns false if the server is away. */
static bool try_one(struct host *h, uint64_t now_ns)
{
	if (now_ns < h->back_ns)
		fail(h, now_ns);
	else
		arrive(h, now_ns);
	return now_ns >= h->back_ns;
}

static void send_waiting(struct host *h, uint64_t now_ns)
{
	const uint64_t second = (now_ns - h->back_ns) / NS_PER_SEC;

	h->waiting -= try_one(h, now_ns);
	if (h->waiting == 0 && second < SECONDS_MAX)
		h->arrivals->drained[second]++;
}

static void play(struct host *h)
{
	for (;;) {
		bool waits = h->waiting > 0 && h->next_ns < h->chunk_ns;
		uint64_t now_ns = waits ? h->next_ns : h->chunk_ns;

		if (now_ns >= h->end_ns)
			return;
		if (waits) {
			send_waiting(h, now_ns);
			continue;
		}
		h->chunk_ns += CHUNK_NS;
		/* A new chunk is sent before those of the spool, but not during a backoff. */
		if (retry_is_waiting(&h->retry, now_ns) || !try_one(h, now_ns))
			h->waiting++;
	}
}

static unsigned int most(const unsigned int *v)
{
	unsigned int max = 0;

	for (size_t i = 0; i < SECONDS_MAX; i++)
		max = v[i] > max ? v[i] : max;
	return max;
}

/* Returns the second by which this share of the sum of v has arrived. */
static size_t when(const unsigned int *v, unsigned int per_mille)
{
	uint64_t all = 0, sum = 0;
	size_t i;

	for (i = 0; i < SECONDS_MAX; i++)
		all += v[i];
	for (i = 0; i < SECONDS_MAX && sum * 1000 < all * per_mille; i++)
		sum += v[i];
	return i;
}

static void print(const struct arrivals *a, const char *name)
{
	(void)printf("| %s | %u | %zu s | %zu s | %u | %.1f | %zu s |\n", name, most(a->hosts),
		     when(a->hosts, 500), when(a->hosts, 990), most(a->chunks),
		     most(a->chunks) / USUAL, when(a->drained, 990));
}

static void outage(struct arrivals *a, enum rule rule, uint64_t away_ns, uint64_t *random)
{
	memset(a, 0, sizeof(*a));
	for (int i = 0; i < HOSTS; i++) {
		struct host h = {
			.rule = rule,
			.random = random,
			.back_ns = away_ns,
			.end_ns = away_ns + SECONDS_MAX * NS_PER_SEC,
			.chunk_ns = random_next(random) % CHUNK_NS,
			.arrivals = a,
		};

		play(&h);
	}
}

/*
 * All hosts start at time 0. waiting: the chunks in the spool of each host. spread: the first
 * chunk and the first chunk of the spool have random times, as in sentry-profd.
 */
static void start(struct arrivals *a, bool spread, enum rule rule, unsigned int waiting,
		  uint64_t *random)
{
	/* As first_chunk_us() in daemon/broker/targets/targets.c. */
	const uint64_t least_ns = CHUNK_NS / 4;

	memset(a, 0, sizeof(*a));
	for (int i = 0; i < HOSTS; i++) {
		struct host h = {
			.rule = rule,
			.random = random,
			.end_ns = SECONDS_MAX * NS_PER_SEC,
			.chunk_ns = CHUNK_NS,
			.waiting = waiting,
			.arrivals = a,
		};

		if (spread) {
			h.chunk_ns = least_ns + random_next(random) % (CHUNK_NS - least_ns);
			h.next_ns = random_next(random) % SPOOLER_START_MAX_NS;
		}
		play(&h);
	}
}

static void head(const char *what)
{
	(void)printf("| %s | hosts back in the busiest second | half of the hosts back within | "
		     "99 %% back within | chunks in the busiest second | times the usual load | "
		     "99 %% of the spools empty after |\n"
		     "| --- | --- | --- | --- | --- | --- | --- |\n",
		     what);
}

int main(void)
{
	static const unsigned int minutes[] = {1, 10, 60};
	static struct arrivals a;
	uint64_t random = 1;
	char name[80];

	head("server away for, rule");
	for (size_t i = 0; i < array_size(minutes); i++) {
		for (int rule = 0; rule < RULES; rule++) {
			outage(&a, (enum rule)rule, minutes[i] * 60 * NS_PER_SEC, &random);
			(void)snprintf(name, sizeof(name), "%u min, %s", minutes[i],
				       rule_names[rule]);
			print(&a, name);
		}
	}
	outage(&a, RULE_DAEMON, 3600 * NS_PER_SEC, &random);
	(void)printf("\nIn the last minute of an outage of an hour all hosts together make %u "
		     "attempts per second.\n\n",
		     a.failed / 60);
	head("all hosts start at once, rule");
	start(&a, true, RULE_DAEMON, 0, &random);
	print(&a, "as in sentry-profd");
	start(&a, false, RULE_DAEMON, 0, &random);
	print(&a, "first chunk of every host after 60 s");
	start(&a, true, RULE_DAEMON, 60, &random);
	print(&a, "as in sentry-profd, with an hour's chunks in the spool");
	start(&a, false, RULE_SHORT_PAUSES, 60, &random);
	print(&a, "first chunk after 60 s, an hour's chunks in the spool sent from the start, "
		  "ten a second");
	return EXIT_SUCCESS;
}
