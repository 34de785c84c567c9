#include "daemon/broker/report/metrics.h"

#include <unistd.h>

#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

FIXTURE(NULL, NULL)

TESTS(a_process_that_has_ended_is_not_counted, 2)
{
	static struct broker b;
	struct instance i = {.targets = &b.modules.targets,
			     .life = _i == 0 ? INSTANCE_LIVES : INSTANCE_ENDED,
			     .delivery.n_envelopes = 1};
	struct instance *list[] = {&i};
	const struct peer reader = {.uid = 1};
	char text[32768] = "";
	uint32_t size;
	int fd;

	build_broker(&b);
	b.modules.targets.instances = list;
	b.modules.targets.n_instances = 1;
	OK(metrics_make(&b.modules, &reader, false, &fd, &size));
	ck_assert_int_gt(pread(fd, text, sizeof(text) - 1, 0), 0);
	HAS(text, _i == 0 ? "processes{state=\"not_profiled\"} 1\n"
			  : "processes{state=\"not_profiled\"} 0\n");
	(void)close(fd);
}
