#include "daemon/common/perf_events.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

int perf_events_try(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.disabled = 1,
	};
	int fd, error = 0;

	/* The first processor can be offline. */
	for (int processor = 0; processor < (int)sysconf(_SC_NPROCESSORS_CONF); processor++) {
		fd = (int)syscall(SYS_perf_event_open, &attr, -1, processor, -1,
				  PERF_FLAG_FD_CLOEXEC);
		error = -errno;
		if (fd >= 0) {
			close_fd(&fd);
			return 0;
		}
		if (error != -ENODEV)
			break;
	}
	return error;
}

const char *perf_events_fault(int error)
{
	switch (error) {
	case -EACCES:
	case -EPERM:
		return "CAP_PERFMON is missing: start as root, for the service add the capability "
		       "(examples/perf.conf), for a container --cap-add PERFMON";
	case -ENOSYS:
		return "a seccomp filter refuses perf_event_open, or the kernel has no perf "
		       "events: "
		       "permit the call (examples/perf.conf)";
	default:
		return "the kernel refuses an event of a processor's clock";
	}
}
