/*
 * main of every unit test program: runs the one suite that the file defines.
 * CK_FORK=no in the environment keeps a failing test in a debugger's hands.
 */
#include "tests/unit/suite.h"

#include <stdlib.h>

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
