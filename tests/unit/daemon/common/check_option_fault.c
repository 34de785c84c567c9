#include "daemon/common/option_fault.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

static const struct option known[] = {
	{"pid", required_argument, NULL, OPTION_LONG},
	{"duration", required_argument, NULL, OPTION_LONG},
	{"debug", no_argument, NULL, OPTION_LONG},
	{"dsn", required_argument, NULL, OPTION_LONG},
	{0},
};

static const struct {
	const char *word, *option, *problem;
} faults[] = {
	{"--durration", "--durration", "not known: did you mean --duration?"},
	{"--duraiton=5", "--duraiton", "not known: did you mean --duration?"},
	{"--dns=https://key@host/1", "--dns", "not known: did you mean --dsn?"},
	{"--piid", "--piid", "not known: did you mean --pid?"},
	{"--speed", "--speed", "not known"},
	{"--", "", ""},
	{"--debug=yes", "--debug", "takes no value"},
	{"--duration", "--duration", "needs a value"},
	{"-xy", "-x", "not known"},
	{"-p", "-p", "needs a value"},
	{"--d", "--d", "not known"},
	{"--a-very-long-option-that-is-none-of-ours-and-is-cut-off",
	 "--a-very-long-option-that-is-no", "not known"},
};

TESTS(a_refused_option_is_described, array_size(faults))
{
	char name[] = "name", *argv[] = {name, strdup(faults[_i].word), NULL};
	struct option_fault fault = {"", ""};
	int result;

	optind = 0;
	opterr = 0;
	result = getopt_long(2, argv, ":p:", known, NULL);
	if (result != -1)
		option_fault(result, argv, known, &fault);
	ck_assert_str_eq(fault.option, faults[_i].option);
	ck_assert_str_eq(fault.problem, faults[_i].problem);
	free(argv[1]);
}

static const struct {
	const char *word, *nearest;
} nearest[] = {
	{"status", "status"}, {"sattus", "status"}, {"stat", "start"},
	{"statu", "status"},  {"stp", "stop"},	    {"strat", "start"},
	{"", NULL},	      {"x", NULL},	    {"detatch", "detach"},
};

TESTS(the_nearest_name_is_suggested, array_size(nearest))
{
	static const char *const names[] = {"status", "start", "stop", "detach"};
	const char *found = option_nearest(nearest[_i].word, names, array_size(names));

	if (nearest[_i].nearest == NULL)
		ck_assert_ptr_null(found);
	else
		ck_assert_str_eq(found, nearest[_i].nearest);
}
