#include "daemon/common/resource_shortage.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"

#define LOG_EVERY_NS (60 * NS_PER_SEC)

static struct {
	uint64_t n;
	uint64_t logged_ns; /* when the last line was logged; 0: never */
} shortage;

bool resource_shortage_is(int error)
{
	switch (error) {
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EAGAIN:
	case ENOBUFS:
	case ETOOMANYREFS:
		return true;
	default:
		return false;
	}
}

void resource_shortage_note(int error, const char *delayed)
{
	const uint64_t now_ns = clock_mono_ns();

	shortage.n++;
	if (shortage.logged_ns != 0 && now_ns - shortage.logged_ns < LOG_EVERY_NS)
		return;
	shortage.logged_ns = now_ns;
	log_warning("%s waits and is tried again, because a resource is short: %s%s", delayed,
		    strerror(error),
		    error == EMFILE ? " (raise the limit of descriptors: ulimit -Hn, LimitNOFILE=)"
				    : "");
}

uint64_t resource_shortage_count(void)
{
	return shortage.n;
}

int resource_shortage_check_descriptors(void)
{
	int fds[IPC_FDS_MAX], r = 0;
	size_t n;

	for (n = 0; n < IPC_FDS_MAX && r == 0; n++) {
		fds[n] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
		if (fds[n] < 0 && errno != EBADF)
			r = -errno;
	}
	while (n > 0)
		close_fd(&fds[--n]);
	return r;
}
