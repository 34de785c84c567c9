/* Writes the cells with times in the tables of functions and programs. */
#ifndef LIB_AGGREGATE_TABLE_CELLS_H
#define LIB_AGGREGATE_TABLE_CELLS_H

#include <stdint.h>
#include <stdio.h>

/* Writes a time in seconds, 11 columns wide. A time of 0 is "-". */
void table_cells_time(uint64_t ns, FILE *out);
/* Writes the same, then the percentage of whole_ns (blanks for a time of 0): 19 columns. */
void table_cells_share(uint64_t ns, uint64_t whole_ns, FILE *out);

#endif
