# SPDX-License-Identifier: MIT
# Reads C++ files and prints one line per violation of the limits on their text:
#   first line SPDX, lines of 100 columns, functions of 70 lines, files of 600.
# Functions are found by counting braces after comments and literals are cut out. That is a
# heuristic, not a parser: it must find every long function, and may call a macro's body one.
# Written for any awk, so without the extensions of GNU awk; run it with LC_ALL=C.

BEGIN {
  columns_max = 100
  function_lines_max = 70
  file_lines_max = 600
}

function report(file, line, text) { print file ":" line ": " text }

function end_of_file() {
  if (file != "" && file_lines > file_lines_max)
    report(file, file_lines, "the file has " file_lines " lines of at most " file_lines_max)
}

# The code in a line, with comments cut out and literals replaced by "". The variables in_comment
# and raw_end (the end of a raw string) carry over to the next line.
function code_of(rest,    out, at, token) {
  out = ""
  while (rest != "") {
    if (in_comment) {
      at = index(rest, "*/")
      if (at == 0) return out
      rest = substr(rest, at + 2)
      in_comment = 0
    } else if (raw_end != "") {
      at = index(rest, raw_end)
      if (at == 0) return out
      rest = substr(rest, at + length(raw_end))
      raw_end = ""
    } else if (match(rest, /\/\/|\/\*|R"|"|'/)) {
      out = out substr(rest, 1, RSTART - 1)
      token = substr(rest, RSTART, RLENGTH)
      rest = substr(rest, RSTART + RLENGTH)
      if (token == "//") return out
      if (token == "/*") {
        in_comment = 1
      } else if (token == "R\"") {
        at = index(rest, "(")
        raw_end = ")" substr(rest, 1, at - 1) "\""
        out = out "\"\""
      } else if (token == "'" && out ~ /[0-9a-fA-F]$/) {
        out = out  # a digit separator: 1'000
      } else {
        rest = after_literal(rest, token)
        out = out "\"\""
      }
    } else {
      return out rest
    }
  }
  return out
}

# What follows the closing quote of a literal whose opening quote is already cut off.
function after_literal(rest, quote,    first) {
  while (rest != "") {
    first = substr(rest, 1, 1)
    if (first == "\\") rest = substr(rest, 3)
    else {
      rest = substr(rest, 2)
      if (first == quote) return rest
    }
  }
  return rest
}

# What a brace opens, judged by the code since the last brace or semicolon: "outer" for what may
# hold functions, "function", or "other".
function kind_of(head) {
  gsub(/->/, " ", head)
  while (gsub(/<[^<>]*>/, "", head)) {}
  gsub(/(public|private|protected)[ \t]*:/, "", head)
  gsub(/\[\[[^]]*\]\]/, "", head)
  sub(/^[ \t]*template/, "", head)
  if (head ~ /^[ \t]*(inline[ \t]+)?namespace([^a-z_]|$)/) return "outer"
  if (head ~ /^[ \t]*extern[ \t]*""[ \t]*$/) return "outer"
  if (head ~ /^[ \t]*(class|struct|union|enum)([^a-zA-Z_0-9]|$)/) return "outer"
  return head ~ /\)/ ? "function" : "other"
}

function brace_opens() {
  depth++
  kind[depth] = (depth == 1 || kind[depth - 1] == "outer") ? kind_of(head) : "other"
  begins[depth] = FNR
  head = ""
}

function brace_closes(    lines) {
  if (depth == 0) return
  lines = FNR - begins[depth] + 1
  if (kind[depth] == "function" && lines > function_lines_max)
    report(FILENAME, begins[depth],
           "the function has " lines " lines of at most " function_lines_max)
  depth--
  head = ""
}

function count_braces(code,    at, token) {
  while (match(code, /[{};]/)) {
    head = head " " substr(code, 1, RSTART - 1)
    token = substr(code, RSTART, 1)
    code = substr(code, RSTART + 1)
    if (token == "{") brace_opens()
    else if (token == "}") brace_closes()
    else head = ""
  }
  head = head " " code
}

FNR == 1 {
  end_of_file()
  file = FILENAME
  depth = 0
  in_comment = 0
  raw_end = ""
  head = ""
  in_directive = 0
  if ($0 != "// SPDX-License-Identifier: MIT")
    report(FILENAME, 1, "the first line must be // SPDX-License-Identifier: MIT")
}

{
  file_lines = FNR
  text = $0
  gsub(/[\200-\277]/, "", text)  # the later bytes of a character in UTF-8 take no column
  if (length(text) > columns_max)
    report(FILENAME, FNR, "the line has " length(text) " columns of at most " columns_max)

  # Both branches of an #if may open the same brace, so directives themselves are skipped; a macro
  # goes on over the lines that end with a backslash.
  continues = in_directive
  if (!continues && !in_comment && raw_end == "" && $0 ~ /^[ \t]*#/) continues = 1
  in_directive = continues && $0 ~ /\\$/
  if (!continues) count_braces(code_of($0))
}

END { end_of_file() }
