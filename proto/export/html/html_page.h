/*
 * The page of proto/export/html/ as two arrays of text. html.c writes the data of a profile between
 * them, as the base64 of a compressed stream (html.h), which needs no escaping. The head ends with
 * the tag <script type="application/octet-stream" id="data">, and the tail begins with </script>.
 * embed.sh makes build/generated/html_page.c of page.html, page.css and the scripts. The arrays do
 * not end with NUL.
 */
#ifndef PROTO_EXPORT_HTML_HTML_PAGE_H
#define PROTO_EXPORT_HTML_HTML_PAGE_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t html_page_head[], html_page_tail[];
extern const size_t html_page_head_size, html_page_tail_size;

/* The script that svg.c writes into a CDATA section. The script does not contain "]]>". */
extern const uint8_t svg_script[];
extern const size_t svg_script_size;

#endif
