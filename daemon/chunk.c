#include "daemon/chunk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "daemon/child.h"
#include "daemon/id.h"
#include "daemon/log.h"
#include "proto/chunk_v2.h"
#include "proto/profile_v1.h"
#include "proto/sdk.h"

#define CHUNK_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static void send_broker(const void *message, size_t size, const int *fds,
			size_t n_fds)
{
	if (ipc_send(MSG_FD, message, size, fds, n_fds) < 0)
		exit(EXIT_SUCCESS);
}

static void recorded_is_lost(uint32_t target, uint32_t record)
{
	const struct msg_record_lost m = {
		.h = MSG_HEADER(MSG_RECORD_LOST, msg_record_lost),
		.target = target,
		.record = record,
	};

	send_broker(&m, sizeof(m), NULL, 0);
}

void chunk_is_lost(uint32_t target, uint32_t record, uint32_t reason)
{
	const struct msg_chunk_lost m = {
		.h = MSG_HEADER(MSG_CHUNK_LOST, msg_chunk_lost),
		.target = target,
		.reason = reason,
	};

	if (record != 0)
		recorded_is_lost(target, record);
	else
		send_broker(&m, sizeof(m), NULL, 0);
}

void chunk_record_is_closed(uint32_t target, uint32_t record)
{
	const struct msg_record_closed m = {
		.h = MSG_HEADER(MSG_RECORD_CLOSED, msg_record_closed),
		.target = target,
		.record = record,
	};

	send_broker(&m, sizeof(m), NULL, 0);
}

static struct utsname kernel;

void chunk_init(void)
{
	(void)uname(&kernel);
}

/* The thread that a transaction is of: the first one, where it is there. */
static uint32_t active_thread(const struct profile *p, int32_t pid)
{
	for (size_t i = 0; i < p->n_samples; i++)
		if (p->samples[i].tid == (uint32_t)pid)
			return (uint32_t)pid;
	return p->samples[0].tid;
}

static int write_v1(const struct msg_session_open *open,
		    const struct profile *profile, FILE *out,
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
	id_make(v.trace_id);
	id_make(span_id);
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

static int write_payload(const struct msg_session_open *open,
			 const struct profile *profile,
			 enum chunk_v2_reader reader, FILE *out,
			 uint64_t *ret_transaction_size)
{
	*ret_transaction_size = 0;
	if (is_v1(open))
		return write_v1(open, profile, out, ret_transaction_size);
	return chunk_v2_write(profile, reader, out);
}

/* Writes the payload into a memfd, and seals the memfd against changes. */
static int encode(const struct msg_session_open *open,
		  const struct profile *profile, enum chunk_v2_reader reader,
		  int *ret_fd, uint64_t *ret_size,
		  uint64_t *ret_transaction_size)
{
	FILE *out = NULL;
	off_t size;
	int fd, copy, r;

	fd = memfd_create("chunk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0)
		out = fdopen(copy, "w");
	if (out == NULL) {
		r = -errno;
		close_fd(&copy);
		goto fail;
	}
	r = write_payload(open, profile, reader, out, ret_transaction_size);
	if (fclose(out) != 0 && r == 0)
		r = -errno;
	if (r < 0)
		goto fail;
	size = lseek(fd, 0, SEEK_END);
	if (size < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, CHUNK_SEALS) < 0) {
		r = -errno;
		goto fail;
	}
	*ret_fd = fd;
	*ret_size = (uint64_t)size;
	return 0;
fail:
	close_fd(&fd);
	return r;
}

/*
 * The second payload, for the file, where the first is the server's. Without
 * memory, or if it is too large, the file gets that one, too.
 */
static void encode_for_file(const struct msg_session_open *open,
			    const struct profile *profile, int *ret_fd,
			    struct msg_chunk *m)
{
	uint64_t transaction_size;

	if (!open->for_server || !open->for_file || is_v1(open) ||
	    encode(open, profile, CHUNK_V2_FILE, ret_fd, &m->file_size,
		   &transaction_size) < 0)
		return;
	if (m->file_size > CHUNK_V2_SIZE_MAX) {
		m->file_size = 0;
		close_fd(ret_fd);
	}
}

/* Of a recording. */
static void send_recorded(const struct msg_session_open *open, uint32_t record,
			  const struct profile *profile)
{
	struct msg_record_chunk m = {
		.h = MSG_HEADER(MSG_RECORD_CHUNK, msg_record_chunk),
		.target = open->target,
		.record = record,
	};
	uint64_t transaction_size;
	int fd = -1;

	if (encode(open, profile, CHUNK_V2_FILE, &fd, &m.size,
		   &transaction_size) < 0 ||
	    m.size > CHUNK_V2_SIZE_MAX)
		recorded_is_lost(open->target, record);
	else
		send_broker(&m, sizeof(m), &fd, 1);
	close_fd(&fd);
}

static void send_payload(const struct msg_session_open *open,
			 const struct profile *profile)
{
	struct msg_chunk m = {
		.h = MSG_HEADER(MSG_CHUNK, msg_chunk),
		.target = open->target,
		.for_server = open->for_server,
	};
	int fds[2] = {-1, -1}, r;

	r = encode(open, profile,
		   open->for_file && !open->for_server ? CHUNK_V2_FILE
						       : CHUNK_V2_SERVER,
		   &fds[0], &m.size, &m.transaction_size);
	if (r < 0) {
		log_warning("a chunk is lost: %s", strerror(-r));
		chunk_is_lost(open->target, 0, CHUNK_LOST_MEMORY);
		return;
	}
	if (m.size > CHUNK_V2_SIZE_MAX) {
		chunk_is_lost(open->target, 0, CHUNK_LOST_TOO_LARGE);
	} else {
		memcpy(m.chunk_id, profile->chunk_id, sizeof(m.chunk_id));
		memcpy(m.platform, open->platform, sizeof(m.platform));
		encode_for_file(open, profile, &fds[1], &m);
		send_broker(&m, sizeof(m), fds, m.file_size > 0 ? 2 : 1);
	}
	for (size_t i = 0; i < array_size(fds); i++)
		close_fd(&fds[i]);
}

void chunk_send(const struct msg_session_open *open, uint32_t record,
		const char *release, const char *environment,
		struct profile *profile)
{
	enum profile_fault fault;

	memcpy(profile->profiler_id, open->profiler_id,
	       sizeof(profile->profiler_id));
	id_make(profile->chunk_id);
	profile->platform = open->platform;
	profile->release = release;
	profile->environment = environment;
	profile->sdk_name = SDK_NAME;
	profile->sdk_version = SDK_VERSION;
	fault = profile_check(profile);
	if (fault != PROFILE_OK) {
		log_debug("a chunk would be rejected: %s",
			  profile_fault_name(fault));
		chunk_is_lost(open->target, record, fault);
	} else if (record != 0) {
		send_recorded(open, record, profile);
	} else {
		send_payload(open, profile);
	}
}
