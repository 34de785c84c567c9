#include "daemon/chunk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/child.h"
#include "daemon/id.h"
#include "daemon/log.h"
#include "proto/chunk_v2.h"
#include "proto/sdk.h"

#define CHUNK_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static void send_broker(const void *message, size_t size, const int *fds,
			size_t n_fds)
{
	if (ipc_send(MSG_FD, message, size, fds, n_fds) < 0)
		exit(EXIT_SUCCESS);
}

void chunk_is_lost(uint32_t target, uint32_t reason)
{
	const struct msg_chunk_lost m = {
		.h = MSG_HEADER(MSG_CHUNK_LOST, msg_chunk_lost),
		.target = target,
		.reason = reason,
	};

	send_broker(&m, sizeof(m), NULL, 0);
}

/* The payload in a memfd that nobody can change any more. */
static int encode(const struct profile *profile, int *ret_fd,
		  uint64_t *ret_size)
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
	r = chunk_v2_write(profile, out);
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

static void send_payload(const struct msg_session_open *open,
			 const struct profile *profile)
{
	struct msg_chunk m = {
		.h = MSG_HEADER(MSG_CHUNK, msg_chunk),
		.target = open->target,
	};
	int fd, r;

	r = encode(profile, &fd, &m.size);
	if (r < 0) {
		log_warning("a chunk is lost: %s", strerror(-r));
		chunk_is_lost(open->target, CHUNK_LOST_MEMORY);
		return;
	}
	if (m.size > CHUNK_V2_SIZE_MAX) {
		chunk_is_lost(open->target, CHUNK_LOST_TOO_LARGE);
	} else {
		memcpy(m.chunk_id, profile->chunk_id, sizeof(m.chunk_id));
		memcpy(m.platform, open->platform, sizeof(m.platform));
		send_broker(&m, sizeof(m), &fd, 1);
	}
	close_fd(&fd);
}

void chunk_send(const struct msg_session_open *open, const char *release,
		struct profile *profile)
{
	enum profile_fault fault;

	memcpy(profile->profiler_id, open->profiler_id,
	       sizeof(profile->profiler_id));
	id_make(profile->chunk_id);
	profile->platform = open->platform;
	profile->release = release;
	profile->environment = open->environment;
	profile->sdk_name = SDK_NAME;
	profile->sdk_version = SDK_VERSION;
	fault = profile_check(profile);
	if (fault == PROFILE_OK) {
		send_payload(open, profile);
	} else {
		log_debug("a chunk would be rejected: %s",
			  profile_fault_name(fault));
		chunk_is_lost(open->target, fault);
	}
}
