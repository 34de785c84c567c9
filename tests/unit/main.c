/*
 * main of every unit test program: runs the one suite that the file defines.
 * CK_FORK=no in the environment keeps a failing test in a debugger's hands.
 */
#include "tests/unit/suite.h"

#include <stdlib.h>

/* For what hangs: a machine may give us a tenth of its time. */
#define TIMEOUT_S "600"

int main(void)
{
	SRunner *runner;
	int failed;

	(void)setenv("CK_DEFAULT_TIMEOUT", TIMEOUT_S, 0);
	runner = srunner_create(suite());
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
