#include "daemon/broker/finish.h"

#include <stdio.h>
#include <unistd.h>

#include "daemon/broker/children/patience.h"
#include "daemon/broker/children/socket.h"
#include "daemon/broker/children/watch.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/common/log.h"
#include "daemon/msg/discard.h"
#include "daemon/process/threads.h"
#include "lib/base/clock.h"
#include "proto/profile.h"

/* How long the last chunks may take to be written, and ship to answer. */
#define DELIVER_NS (13 * NS_PER_SEC)
#define TABLE_ROWS 20

static bool anybody_works(const struct broker *b)
{
	bool works = watch_works(b);

	for (size_t i = 0; i < b->n_unwinds && !works; i++) {
		int32_t pid = b->unwinds[i]->child.pid;

		works = pid != 0 && threads_any_runnable(pid);
	}
	return works;
}

/* Runs the loop once; false when it was asked for long enough. */
static bool run_in_patience(struct broker *b, struct patience *p)
{
	uint64_t end = patience_end_ns(p, broker_now_ns(b), anybody_works(b));

	if (broker_now_ns(b) >= end)
		return false;
	broker_run_once(b, broker_wait_ms(b, end));
	return true;
}

void finish_sampling(struct broker *b)
{
	struct patience patience;

	broker_goes_on_to(b, BROKER_SAMPLED);
	b->ended_ns = broker_now_ns(b);
	child_tell(&b->capture, MSG_CAPTURE_STOP, 0);
	patience_start(&patience, b->ended_ns);
	while (b->capture.pid != 0 && run_in_patience(b, &patience))
		continue;
	if (b->capture.pid != 0)
		child_fail(&b->capture, "does not end");
	/*
	 * Sessions whose RECORD_END was written close by themselves; this is
	 * for those that have none.
	 */
	patience_start(&patience, broker_now_ns(b));
	targets_close(b);
	while (!targets_all_closed(b) && run_in_patience(b, &patience))
		continue;
}

void finish_delivery(struct broker *b)
{
	const uint64_t send_ns = (uint64_t)(b->options.config.shutdown_timeout_s * 1e9);
	const uint64_t deadline = broker_now_ns(b) + send_ns + DELIVER_NS;

	delivery_finish(b, send_ns);
	while (b->n_envelopes > 0 && broker_now_ns(b) < deadline && !b->hurried)
		broker_run_once(b, broker_wait_ms(b, deadline));
	/* What is there may still be spooled: it is answered until the end. */
	if (b->hurried)
		delivery_finish(b, 0);
}

void finish_print_tables(struct broker *b)
{
	const bool several = targets_count(b) > 1;
	struct patience patience;

	(void)fflush(stdout);
	patience_start(&patience, broker_now_ns(b));
	FOR_EACH_TARGET (t, b) {
		const struct msg_table m = {
			.h = MSG_HEADER(MSG_TABLE),
			.target = t->id,
			.max_rows = TABLE_ROWS,
		};

		if (!t->attached_once || t->unwind == NULL || t->unwind->child.fd < 0)
			continue;
		if (several) {
			printf("process %d\n", t->pid);
			(void)fflush(stdout);
		}
		b->tables_awaited = 1;
		child_send(&t->unwind->child, &m, sizeof(m), (int[]){STDOUT_FILENO}, 1);
		while (b->tables_awaited > 0 && t->unwind->child.fd >= 0 &&
		       run_in_patience(b, &patience))
			continue;
	}
}

static uint64_t discarded(const struct chunk_counts *c)
{
	uint64_t lost = 0;

	for (size_t d = 0; d < DISCARD_REASONS_MAX; d++)
		lost += c->discarded[d];
	return lost;
}

/* Of what was too short for a chunk there is nothing to lose. */
static uint64_t lost_chunks(const struct chunk_counts *c)
{
	return discarded(c) - c->discarded[PROFILE_NO_SAMPLES];
}

bool finish_lost_all(const struct broker *b)
{
	struct instance_figures all;
	const struct chunk_counts *c = &all.chunks;
	uint64_t lost;

	/* "profiles go nowhere": a warning at the start has said so. */
	if (!b->has_dsn && b->output.dir_fd < 0)
		return false;
	figures_of_all(b, &all);
	lost = lost_chunks(c);
	if (lost == 0 || c->sent + c->written + c->spooled > 0)
		return false;
	log_error("everything is lost: no chunk of this run was sent, written "
		  "or put into a spool (chunks lost: %llu)",
		  (unsigned long long)lost);
	return true;
}

void finish_tell_lost(const struct broker *b)
{
	struct instance_figures all;
	uint64_t lost;

	figures_of_all(b, &all);
	lost = lost_chunks(&all.chunks);
	if (lost > 0)
		log_warning("%llu chunk%s of this run lost (--stats tells why)",
			    (unsigned long long)lost, lost == 1 ? " is" : "s are");
}

void finish_print_outcome(const struct broker *b)
{
	struct instance_figures all;
	const struct chunk_counts *c = &all.chunks;
	uint64_t lost;

	figures_of_all(b, &all);
	lost = discarded(c);
	if (b->picture.is_made)
		printf("the profile is in %s\n", b->options.output);
	else if (b->output.dir_fd >= 0)
		printf("%llu envelope%s in %s\n", (unsigned long long)b->files_written,
		       b->files_written == 1 ? "" : "s", b->output.path);
	if (c->unwritten > 0)
		printf("%llu envelope%s could not be written\n", (unsigned long long)c->unwritten,
		       c->unwritten == 1 ? "" : "s");
	if (b->has_dsn)
		printf("%llu chunk%s sent\n", (unsigned long long)c->sent, c->sent == 1 ? "" : "s");
	if (b->spotlight.ship != NULL)
		printf("%llu chunk%s sent to Spotlight\n",
		       (unsigned long long)b->spotlight.chunks.sent,
		       b->spotlight.chunks.sent == 1 ? "" : "s");
	if (c->spooled > 0)
		printf("%llu chunk%s put into the spool, to be sent later\n",
		       (unsigned long long)c->spooled, c->spooled == 1 ? "" : "s");
	if (lost > 0 && b->command.pid == 0)
		printf("%llu chunk%s discarded (--stats tells why)\n", (unsigned long long)lost,
		       lost == 1 ? "" : "s");
}
