#include "daemon/ctl/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/common/control_client.h"
#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/ctl/doctor/doctor_checks.h"
#include "lib/base/digits.h"

const char doctor_help[] =
	"\n"
	"doctor [PID]     find out what prevents good profiles: on this machine, in the\n"
	"                 configuration, at the servers and in process PID; --config FILE\n"
	"                 names another configuration than that of the daemon\n";

int doctor_run(int argc, char **argv)
{
	enum { SOCKET = OPTION_LONG, CONFIG };
	static const struct option options[] = {
		{"socket", required_argument, NULL, SOCKET},
		{"config", required_argument, NULL, CONFIG},
		{0},
	};
	struct doctor d = {.findings_fd = -1};
	const char *socket = NULL;
	int c;

	while ((c = option_next(argv[0], argc, argv, ":", options, NULL)) != -1) {
		if (c == '?')
			return EXIT_USAGE;
		if (c == SOCKET)
			socket = optarg;
		else
			d.config = optarg;
	}
	if (argc - optind > 1 || (argc - optind == 1 && !digits_pid(argv[optind], &d.pid))) {
		log_error("doctor takes a pid or nothing (see --help)");
		return EXIT_USAGE;
	}
	d.socket = control_client_path(socket);
	/* First: the other checks judge the rights of the daemon, if one runs. */
	doctor_daemon(&d);
	doctor_version(&d);
	doctor_host(&d);
	doctor_delivery(&d);
	if (d.pid != 0 && doctor_target(&d))
		doctor_files(&d);
	(void)fflush(stdout);
	return finding_status(d.worst);
}
