/*
 * outage: how hosts meet a server that was away for a while, or that is there
 * when they all start. By the daemon's own rules, on a clock that is only
 * counted: the same figures in every run. Prints Markdown.
 *
 * Each host makes a chunk a minute. Hosts know nothing of each other, and the
 * server takes all that comes; so they are played one after the other.
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
#define USUAL	    (HOSTS / 60.0) /* chunks a second */
#define SECONDS_MAX 4000

enum rule {
	AS_IT_IS,
	SHORT_PAUSES, /* as few ms between those that waited as there may be */
	NO_CHANCE,    /* waits that double, all of them as long as they may */
	EVERY_SECOND, /* and no pause between those that waited */
	RULES
};

static const char *const rule_names[RULES] = {"as it is", "pauses of 100 ms", "waits by no chance",
					      "every second, and no pause"};

/* Of all hosts, by second since the server is there. */
struct arrivals {
	unsigned int chunks[SECONDS_MAX];
	unsigned int hosts[SECONDS_MAX];   /* their first chunk */
	unsigned int drained[SECONDS_MAX]; /* their last that waited */
	unsigned int in_vain;		   /* in the last minute before */
};

struct host {
	enum rule rule;
	uint64_t *random;
	uint64_t back_ns; /* the server is there from then on */
	uint64_t end_ns;
	uint64_t chunk_ns; /* its next chunk */
	uint64_t next_ns;  /* of those that wait, the next is due */
	struct retry retry;
	unsigned int waiting;
	bool met;
	struct arrivals *arrivals;
};

static void fail(struct host *h, uint64_t now_ns)
{
	uint64_t random = random_next(h->random);

	if (h->back_ns - now_ns <= 60 * NS_PER_SEC)
		h->arrivals->in_vain++;
	/* The longest: it is taken modulo one more than that. */
	if (h->rule == NO_CHANCE)
		random = min_u64(RETRY_FIRST_NS << min_u64(h->retry.failures, 16), RETRY_MAX_NS);
	retry_failed(&h->retry, now_ns, random);
	if (h->rule == EVERY_SECOND)
		h->retry.until_ns = now_ns + NS_PER_SEC;
	h->next_ns = h->retry.until_ns;
}

static uint64_t pause_ns(const struct host *h)
{
	const uint64_t span_ns = h->waiting > 0 ? (h->waiting - 1) * CHUNK_NS : 0;

	if (h->rule == EVERY_SECOND)
		return 0;
	if (h->rule == SHORT_PAUSES)
		return RETRY_PAUSE_MIN_NS;
	return retry_pause_ns(h->waiting, span_ns, random_next(h->random));
}

static void arrive(struct host *h, uint64_t now_ns)
{
	uint64_t second = (now_ns - h->back_ns) / NS_PER_SEC;

	if (second < SECONDS_MAX) {
		h->arrivals->chunks[second]++;
		h->arrivals->hosts[second] += !h->met;
	}
	h->met = true;
	retry_succeeded(&h->retry);
	h->next_ns = now_ns + pause_ns(h);
}

/* It is due: a chunk that is new, or one that waits. */
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
		/* A new one does not wait for others, but for the server. */
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

/* The second at which that many per mille of all have come. */
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

/* All of them at once; with so many each that waited. */
static void start(struct arrivals *a, bool spread, enum rule rule, unsigned int waiting,
		  uint64_t *random)
{
	/* As first_chunk_us() of daemon/broker/targets/targets.c has it. */
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
	(void)printf("| %s | most hosts in a second | half of them within | "
		     "99 %% within | most chunks in a second | times the "
		     "usual | 99 %% have nothing more waiting after |\n"
		     "| --- | --- | --- | --- | --- | --- | --- |\n",
		     what);
}

int main(void)
{
	static const unsigned int minutes[] = {1, 10, 60};
	static struct arrivals a;
	uint64_t random = 1;
	char name[80];

	head("away for");
	for (size_t i = 0; i < array_size(minutes); i++) {
		for (int rule = 0; rule < RULES; rule++) {
			outage(&a, (enum rule)rule, minutes[i] * 60 * NS_PER_SEC, &random);
			(void)snprintf(name, sizeof(name), "%u min, %s", minutes[i],
				       rule_names[rule]);
			print(&a, name);
		}
	}
	outage(&a, AS_IT_IS, 3600 * NS_PER_SEC, &random);
	(void)printf("\nBefore it is back, %u tries a second are in vain.\n\n", a.in_vain / 60);
	head("all start at once");
	start(&a, true, AS_IT_IS, 0, &random);
	print(&a, "as it is");
	start(&a, false, AS_IT_IS, 0, &random);
	print(&a, "a chunk each minute from the start on");
	start(&a, true, AS_IT_IS, 60, &random);
	print(&a, "as it is, and an hour's chunks wait");
	start(&a, false, SHORT_PAUSES, 60, &random);
	print(&a, "at once, pauses of 100 ms, and an hour's chunks wait");
	return EXIT_SUCCESS;
}
