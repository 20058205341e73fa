# SPDX-License-Identifier: MIT
# Reads C++ files and prints one line for each await in a place where g++-12 evaluates it wrongly
# (docs/compilers.md): to the right of && or ||, in the condition of do-while, and in any condition
# of a coroutine that has no local variable; and for those in a throw expression, which leak. A
# heuristic, not a parser; run it after code.awk.
#
# A level is what a bracket or brace has opened:
#   opened     its bracket
#   logical    && or || came in this expression
#   thrown     it is a throw expression
#   control    the keyword of the control statement that began at this level
#   closed     a parenthesis was closed since the statement began
#   text       the statement so far, without what is in brackets
#   loop       "do" if the brace is the body of do, or the parenthesis its condition
#   condition  the keyword whose condition this parenthesis is
#   body       the brace is the body of a function
#   local      of such a body: it has a local variable
#   waits      of such a body: the lines of its conditions that await

function report(line, text) { print FILENAME ":" line ": " text }

function begin_statement() {
  logical[depth] = thrown[depth] = closed[depth] = 0
  control[depth] = text[depth] = ""
}

function open_level(bracket) {
  depth++
  opened[depth] = bracket
  loop[depth] = condition[depth] = waits[depth] = ""
  body[depth] = local[depth] = 0
  begin_statement()
}

# The body of the innermost function; 0 if there is none.
function function_level(    at) {
  for (at = depth; at > 0 && !body[at]; at--) {}
  return at
}

# A statement, or what came of it before a brace, that declares a variable: a type and a name.
function declares(code) {
  sub(/^[ \t]+/, "", code)
  if (code ~ /^(co_|return|throw|delete|new|else|using|case|goto|typedef|if|while|for|do)[^a-z0-9]/)
    return 0
  gsub(/(const|constexpr|static|thread_local|unsigned|long|typename|struct|volatile) /, "", code)
  while (gsub(/<[^<>]*>/, "", code)) {}
  return code ~ /^(::)?[a-zA-Z_][a-zA-Z_0-9:]*( const)?[ &*]+[a-zA-Z_][a-zA-Z_0-9]* *(=|:|$)/ ||
         code ~ /^auto[ &]*(=|:)/
}

# One variable anywhere in the function is enough.
function note_declaration(    at) {
  at = function_level()
  if (at > 0 && declares(text[depth])) local[at] = 1
}

function opening_brace(    is_body, was_do) {
  was_do = last == "do"
  is_body = closed[depth] && control[depth] == "" && text[depth] !~ /(class|struct|namespace|=) *$/
  if (opened[depth] == "{") note_declaration()
  open_level("{")
  if (was_do) loop[depth] = "do"
  body[depth] = is_body
}

function closing_brace(    lines, i, count) {
  if (depth == 0) return
  if (body[depth] && !local[depth] && waits[depth] != "") {
    count = split(waits[depth], lines, " ")
    for (i = 1; i <= count; i++)
      report(lines[i], "an await in a condition of a coroutine without local variables;" \
             " name its result first")
  }
  ended = loop[depth]
  depth--
  if (opened[depth] == "{" || depth == 0) begin_statement()
}

function opening_bracket(token,    keyword) {
  keyword = token == "(" && last ~ /^(if|while|for|switch)$/ ? last : ""
  if (token == "(" && last == "constexpr") keyword = ""
  open_level(token)
  condition[depth] = keyword
  if (keyword == "while" && ended_before == "do") loop[depth] = "do"
}

function closing_bracket() {
  if (depth == 0) return
  if (condition[depth] == "for") note_declaration()
  depth--
  closed[depth] = 1
}

# An await: what it is inside of, up to the braces around it.
function awaits(    at) {
  for (at = depth; at > 0; at--) {
    if (logical[at]) report(FNR, "an await to the right of && or ||; name its result first")
    if (thrown[at]) report(FNR, "an await in a throw expression; await first")
    if (opened[at] != "{" && loop[at] == "do")
      report(FNR, "an await in the condition of do-while; await in the body")
    if (opened[at] != "{" && condition[at] != "" && function_level() > 0) {
      note_declaration()
      waits[function_level()] = waits[function_level()] " " FNR
    }
    if (opened[at] == "{") return
  }
}

function take(token, spaced) {
  if (token == "{") opening_brace()
  else if (token == "}") closing_brace()
  else if (token == "(" || token == "[") opening_bracket(token)
  else if (token == ")" || token == "]") closing_bracket()
  else if (token == ";") {
    if (opened[depth] == "{" || condition[depth] == "for") note_declaration()
    begin_statement()
  } else if (token == ",") logical[depth] = 0
  else if (token == "&&" || token == "||") { if (spaced) logical[depth] = 1 }
  else if (token == "co_await") awaits()
  else if (token == "throw") thrown[depth] = 1
  else if (token ~ /^(if|while|for|switch|catch|else|do|try)$/ && control[depth] == "")
    control[depth] = token
  if (token != "while") ended_before = ""
  else ended_before = last == "}" ? ended : ""
  last = token
}

function scan(code,    before, token) {
  while (match(code, /[a-zA-Z_][a-zA-Z_0-9]*|&&|\|\||[][(){};,]/)) {
    before = substr(code, 1, RSTART - 1)
    token = substr(code, RSTART, RLENGTH)
    code = substr(code, RSTART + RLENGTH)
    text[depth] = text[depth] before
    if (before ~ /[^ \t]/) last = ""
    if (token ~ /^[a-zA-Z_]/) text[depth] = text[depth] token
    take(token, (before ~ /[ \t]$/ || before == "" && last == "line") && code ~ /^([ \t]|$)/)
  }
  text[depth] = text[depth] code " "
}

FNR == 1 {
  depth = 0
  last = ended = ended_before = ""
  opened[0] = "{"
  begin_statement()
}

{ scan(code_of_line()) }
