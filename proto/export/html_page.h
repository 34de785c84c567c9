/*
 * The page of proto/export/html/ without data, in two parts: what stands before
 * the data, and what stands behind. The build makes build/html_page.c of it
 * (proto/export/html/embed.sh). No NUL ends them.
 */
#ifndef PROTO_EXPORT_HTML_PAGE_H
#define PROTO_EXPORT_HTML_PAGE_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t html_page_head[], html_page_tail[];
extern const size_t html_page_head_size, html_page_tail_size;

#endif
