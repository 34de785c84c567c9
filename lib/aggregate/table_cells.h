/* Writes the cells with times in the tables of functions and programs. */
#ifndef LIB_AGGREGATE_TABLE_CELLS_H
#define LIB_AGGREGATE_TABLE_CELLS_H

#include <stdint.h>
#include <stdio.h>

/* Writes a time in seconds, right-aligned in 11 columns: "     1.50 s". A time of 0 is "-". */
void table_cells_time(uint64_t ns, FILE *out);
/*
 * Writes the cell of table_cells_time(), then which percentage of whole_ns the time is, 19 columns
 * in total. The percentage is blank for a time of 0, and 0.0 if whole_ns is 0.
 */
void table_cells_share(uint64_t ns, uint64_t whole_ns, FILE *out);

#endif
