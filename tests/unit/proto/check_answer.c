#include "proto/answer.h"

#include <string.h>

#include "tests/unit/suite.h"

static const struct {
	const char *body, *detail;
} cases[] = {
	{"{\"detail\":\"bad \\u00e4\",\"causes\":[]}", "bad \303\244"},
	{"{\"detail\":\"a text that is too long\"}", "a text that is "},
	{"{\"detail\":\"\"}", ""},
	{"{\"detail\":7}", ""},
	{"{\"details\":\"x\"}", ""},
	{"{\"detail\":\"x\"", ""},
	{"[\"detail\"]", ""},
	{"<html>detail</html>", ""},
	{"", ""},
};

TESTS(reads_the_detail_of_an_error, array_size(cases))
{
	char detail[16] = "old";

	answer_detail(cases[_i].body, strlen(cases[_i].body), detail, sizeof(detail));
	ck_assert_str_eq(detail, cases[_i].detail);
}
