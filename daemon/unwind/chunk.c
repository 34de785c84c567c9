#include "daemon/unwind/chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/msg/discard.h"
#include "lib/base/ipc.h"
#include "lib/base/sealed.h"
#include "lib/unwind/unwind.h"
#include "proto/chunk_v2.h"
#include "proto/profile_v1.h"
#include "proto/sdk.h"
#include "proto/transaction.h"

static void send_broker(const void *message, size_t size, const int *fds, size_t n_fds)
{
	if (ipc_send(MSG_FD, message, size, fds, n_fds) < 0)
		exit(EXIT_SUCCESS);
}

static void send_recording_message(enum msg_type type, uint32_t target, uint32_t recording)
{
	const struct msg_recording m = {
		.h = {type, sizeof(m)},
		.target = target,
		.recording = recording,
	};

	send_broker(&m, sizeof(m), NULL, 0);
}

void chunk_report_lost(uint32_t target, uint32_t recording, uint32_t reason)
{
	const struct msg_chunk_lost m = {
		.h = MSG_HEADER(MSG_CHUNK_LOST),
		.target = target,
		.reason = reason,
	};

	if (recording != 0)
		send_recording_message(MSG_RECORDING_LOST, target, recording);
	else
		send_broker(&m, sizeof(m), NULL, 0);
}

void chunk_report_closed(uint32_t target, uint32_t recording)
{
	send_recording_message(MSG_RECORDING_CLOSED, target, recording);
}

static struct utsname kernel;

void chunk_init(void)
{
	(void)uname(&kernel);
}

/* Returns the transaction's thread: the main thread if it has a sample. */
static uint32_t active_thread(const struct profile *p, int32_t pid)
{
	for (size_t i = 0; i < p->n_samples; i++)
		if (p->samples[i].tid == (uint32_t)pid)
			return (uint32_t)pid;
	return p->samples[0].tid;
}

static int write_v1(const struct msg_session_open *open, const struct profile *profile, FILE *out,
		    uint64_t *ret_transaction_size)
{
	struct profile_v1 v = {
		.profile = profile,
		.name = open->transaction,
		.tid = active_thread(profile, open->pid),
	};
	char span_id[MSG_ID_SIZE];
	off_t size;
	int r;

	v.architecture = kernel.machine;
	v.os_name = kernel.sysname;
	v.os_version = kernel.release;
	random_id(v.trace_id);
	random_id(span_id);
	memcpy(v.span_id, span_id, sizeof(v.span_id) - 1);
	r = profile_v1_transaction(&v, out);
	if (r < 0)
		return r;
	size = ftello(out);
	if (size < 0)
		return -errno;
	*ret_transaction_size = (uint64_t)size;
	return profile_v1_write(&v, out);
}

static bool is_v1(const struct msg_session_open *open)
{
	return open->transaction[0] != '\0';
}

static int write_payload(const struct msg_session_open *open, const struct profile *profile,
			 enum chunk_v2_reader reader, FILE *out, uint64_t *ret_transaction_size)
{
	*ret_transaction_size = 0;
	if (is_v1(open))
		return write_v1(open, profile, out, ret_transaction_size);
	return chunk_v2_write(profile, reader, out);
}

static int encode(const struct msg_session_open *open, const struct profile *profile,
		  enum chunk_v2_reader reader, int *ret_fd, uint64_t *ret_size,
		  uint64_t *ret_transaction_size)
{
	struct sealed s;
	int r = sealed_open(&s, "chunk");

	if (r < 0)
		return r;
	r = write_payload(open, profile, reader, s.out, ret_transaction_size);
	return sealed_close(&s, r, ret_fd, ret_size);
}

/* Returns true if a file or Spotlight gets the payload, with thread states and code_ids. */
static bool needs_file_payload(const struct msg_session_open *open)
{
	return open->for_file || open->for_spotlight;
}

/*
 * Encodes the second payload, for a file and Spotlight, if the first one is for the
 * server. Without memory, or if the second payload is too large, they get the
 * first one.
 */
static void encode_file_payload(const struct msg_session_open *open, const struct profile *profile,
				int *ret_fd, struct msg_chunk *m)
{
	uint64_t transaction_size;

	if (!open->for_server || !needs_file_payload(open) || is_v1(open) ||
	    encode(open, profile, CHUNK_V2_FILE, ret_fd, &m->file_size, &transaction_size) < 0)
		return;
	if (m->file_size > CHUNK_V2_SIZE_MAX) {
		m->file_size = 0;
		close_fd(ret_fd);
	}
}

/* Sends a chunk of a recording, or reports it as lost. */
static void send_recording_chunk(const struct msg_session_open *open, uint32_t recording,
				 const struct profile *profile)
{
	struct msg_recording_chunk m = {
		.h = MSG_HEADER(MSG_RECORDING_CHUNK),
		.target = open->target,
		.recording = recording,
	};
	uint64_t transaction_size;
	int fd = -1;

	if (encode(open, profile, CHUNK_V2_FILE, &fd, &m.size, &transaction_size) < 0 ||
	    m.size > CHUNK_V2_SIZE_MAX)
		send_recording_message(MSG_RECORDING_LOST, open->target, recording);
	else
		send_broker(&m, sizeof(m), &fd, 1);
	close_fd(&fd);
}

/* Writes the transaction for Spotlight. Its trace id is the profiler's id. */
static int write_spotlight_transaction(const struct msg_session_open *open,
				       const struct profile *profile, const char *program,
				       FILE *out)
{
	char name[MSG_TEXT_MAX + sizeof(" 2147483647")], span_id[MSG_ID_SIZE];
	struct transaction t = {
		.profile = profile,
		.name = name,
		.end_us = profile->samples[profile->n_samples - 1].time_us,
		.of_chunk = true,
	};
	int r;

	(void)snprintf(name, sizeof(name), "%s %d", program, open->pid);
	memcpy(t.trace_id, profile->profiler_id, sizeof(t.trace_id));
	random_id(span_id);
	memcpy(t.span_id, span_id, sizeof(t.span_id) - 1);
	r = transaction_busiest(profile, &t.tid);
	return r < 0 ? r : transaction_write(&t, out);
}

/*
 * Encodes a transaction for Spotlight, which draws a chunk only below a transaction
 * that refers to it. Without memory the chunk is sent without a transaction.
 */
static void encode_spotlight_transaction(const struct msg_session_open *open,
					 const struct profile *profile, const char *program,
					 int *ret_fd, struct msg_chunk *m)
{
	struct sealed s;
	int r;

	if (!open->for_spotlight || is_v1(open) || sealed_open(&s, "transaction") < 0)
		return;
	r = sealed_close(&s, write_spotlight_transaction(open, profile, program, s.out), ret_fd,
			 &m->anchor_size);
	if (r < 0)
		log_debug("process %d: encoding a chunk's transaction failed: %s: Spotlight does "
			  "not show the chunk",
			  open->pid, strerror(-r));
}

static void send_payload(const struct msg_session_open *open, const char *program,
			 const struct profile *profile)
{
	struct msg_chunk m = {
		.h = MSG_HEADER(MSG_CHUNK),
		.target = open->target,
		.for_server = open->for_server,
	};
	int fds[3] = {-1, -1, -1}, r;
	size_t n = 1;

	r = encode(open, profile,
		   needs_file_payload(open) && !open->for_server ? CHUNK_V2_FILE : CHUNK_V2_SERVER,
		   &fds[0], &m.size, &m.transaction_size);
	if (r < 0) {
		log_warning("process %d: a chunk is lost, because encoding it failed: %s",
			    open->pid, strerror(-r));
		chunk_report_lost(open->target, 0, DISCARD_MEMORY);
		return;
	}
	if (m.size > CHUNK_V2_SIZE_MAX) {
		chunk_report_lost(open->target, 0, DISCARD_TOO_LARGE);
	} else {
		memcpy(m.chunk_id, profile->chunk_id, sizeof(m.chunk_id));
		memcpy(m.platform, open->platform, sizeof(m.platform));
		encode_file_payload(open, profile, &fds[n], &m);
		n += m.file_size > 0;
		encode_spotlight_transaction(open, profile, program, &fds[n], &m);
		n += m.anchor_size > 0;
		send_broker(&m, sizeof(m), fds, n);
	}
	for (size_t i = 0; i < array_size(fds); i++)
		close_fd(&fds[i]);
}

static const char *symbols_name(uint32_t symbols)
{
	static const char *const names[] = {
		[UNWIND_SYMBOLS_NONE] = "none",
		[UNWIND_SYMBOLS_NAMES] = "names",
		[UNWIND_SYMBOLS_LINES] = "lines",
	};

	return symbols < array_size(names) ? names[symbols] : NULL;
}

void chunk_send(const struct msg_session_open *open, uint32_t recording,
		const struct chunk_program *program, struct profile *profile)
{
	enum profile_fault fault;

	memcpy(profile->profiler_id, open->profiler_id, sizeof(profile->profiler_id));
	random_id(profile->chunk_id);
	profile->platform = open->platform;
	profile->release = program->release;
	profile->environment = program->environment;
	profile->command_line = open->with_command_line ? program->command_line : NULL;
	profile->sdk_name = SDK_NAME;
	profile->sdk_version = SDK_VERSION;
	profile->symbols = symbols_name(open->symbols);
	fault = profile_check(profile);
	if (fault != PROFILE_OK) {
		log_debug("process %d: a chunk is discarded, because a server would reject it: %s",
			  open->pid, profile_fault_name(fault));
		chunk_report_lost(open->target, recording, fault);
	} else if (recording != 0) {
		send_recording_chunk(open, recording, profile);
	} else {
		send_payload(open, program->name, profile);
	}
}
