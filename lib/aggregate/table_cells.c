#include "lib/aggregate/table_cells.h"

#include "lib/base/util.h"

void table_cells_time(uint64_t ns, FILE *out)
{
	if (ns == 0)
		(void)fprintf(out, "%11s", "-");
	else
		(void)fprintf(out, "%9.2f s", (double)ns / (double)NS_PER_SEC);
}

void table_cells_share(uint64_t ns, uint64_t whole_ns, FILE *out)
{
	table_cells_time(ns, out);
	if (ns == 0)
		(void)fprintf(out, "  %6s", "");
	else
		(void)fprintf(out, "  %5.1f%%",
			      whole_ns == 0 ? 0 : 100 * (double)ns / (double)whole_ns);
}
