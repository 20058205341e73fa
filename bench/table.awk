# SPDX-License-Identifier: MIT
#
# Turns a layer's rows and the results into two markdown tables that are also readable as they are.
# Needs spread.awk. First file: rows.tsv, see core/rows.tsv. Second file, one line per run: who,
# variant, cores, program, row, size, value, unit and, where it was measured, processor time.

# Whom weir is compared with, in the order of their columns; who has no result has no column.
BEGIN {
    peers = split("asio asio_coro beast tbb caf erlang go node views sqlite floor", peer, " ")
    label["asio"] = "Asio"; label["asio_coro"] = "Asio coroutines"; label["beast"] = "Beast"
    label["tbb"] = "oneTBB"; label["caf"] = "CAF"
    label["erlang"] = "Erlang"; label["go"] = "Go"; label["node"] = "Node"
    label["views"] = "views"; label["sqlite"] = "SQLite"; label["floor"] = "floor"
}

FNR == NR && only != "" && $1 != only { next }

# A row of the file is one of the table for each placement of its threads.
FNR == NR {
    places = split($9 == "" || $9 == "-" ? "free" : $9, place, ",")
    for (p = 1; p <= places; ++p) {
        ++rows
        row[rows] = $2; title[rows] = $3; unit[rows] = $4; size[rows] = $5
        target[rows, "gcc"] = $6; target[rows, "clang"] = $7; growth[rows] = $8
        cores[rows] = place[p]
    }
    if ($10 != "" && $10 != "-") differences = differences "\n- *" $3 "*: " $10
    next
}

{
    key = $1 SUBSEP $2 SUBSEP $3 SUBSEP $5 SUBSEP $6
    add_run(key, $7)
    if ($9 != "") add_run(key SUBSEP "cpu", $9)
}

function key_of(who, variant, r, items) {
    return who SUBSEP variant SUBSEP cores[r] SUBSEP row[r] SUBSEP items
}

# The result, or "" if there was none or it did not settle.
function result(who, variant, r, items,    key) {
    key = key_of(who, variant, r, items)
    return (key in run_count) && settled(key) ? median_of(key) : ""
}

# What a cell says: wall time / processor time, or why there is no number.
function text_of(who, variant, r, items,    key, each) {
    key = key_of(who, variant, r, items)
    if (!(key in run_count)) return "-"
    ++shown_results
    if (!settled(key)) {
        ++unsettled_results
        return sprintf("spread %.1fx", spread_of(key))
    }
    # The cost per item; a row in ms is a total.
    each = unit[r] == "ms" && per_item ? 1e6 / items : 1
    if (!((key SUBSEP "cpu") in run_count)) return number(median_of(key) * each)
    return number(median_of(key) * each) " / " \
        (settled(key SUBSEP "cpu") ? number(median_of(key SUBSEP "cpu") * each) : "-")
}

# A peer is shown at its best, so that no ratio owes anything to a bad choice of ours.
function best_variant(who, r, items,    first, second, a, b) {
    first = who == "go" || who == "erlang" ? "one" : "gcc"
    second = who == "go" || who == "erlang" || who == "node" ? "all" : "clang"
    a = result(who, first, r, items)
    b = result(who, second, r, items)
    if (a == "" && b == "") return key_of(who, first, r, items) in run_count ? first : second
    return a == "" || (b != "" && b < a) ? second : first
}

function best(who, r, items) { return result(who, best_variant(who, r, items), r, items) }

function worse(a, b) { return a == "" || (b != "" && b > a) ? b : a }

function number(value) {
    if (value == "") return "-"
    return sprintf(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value)
}

function ratio(above, below) {
    return above == "" || below == "" || below == 0 ? "-" : number(above / below) "x"
}

function short_size(items) {
    if (items >= 1000000) return items / 1000000 "M"
    if (items >= 1000) return items / 1000 "k"
    return items > 1 ? items : "-"
}

# A target is a number, "peer/n": an n-th of what that peer needs in the same run, or "peer*n": n
# times that; several are separated by commas.
function one_target(text,    parts) {
    if (split(text, parts, "/") == 2) return label[parts[1]] "/" parts[2]
    if (split(text, parts, "[*]") == 2) return (parts[2] == 1 ? "" : parts[2] "x ") label[parts[1]]
    return text
}

function target_text(r,    gcc, clang, parts, n, i, text) {
    gcc = target[r, "gcc"]; clang = target[r, "clang"]
    if (gcc == "-" && clang == "-") return "-"
    if (gcc != clang) return "<= " gcc " g++, " clang " clang"
    n = split(gcc, parts, ",")
    for (i = 1; i <= n; ++i) text = text (i > 1 ? ", " : "") "<= " one_target(parts[i])
    return text
}

function one_limit(text, r,    parts, theirs) {
    if (split(text, parts, "/") == 2) {
        theirs = best(parts[1], r, size[r])
        return theirs == "" ? "" : theirs / parts[2]
    }
    if (split(text, parts, "[*]") == 2) {
        theirs = best(parts[1], r, size[r])
        return theirs == "" ? "" : theirs * parts[2]
    }
    return text + 0
}

# The lowest of a row's limits, "" if one of them is unknown.
function limit(r, variant,    parts, n, i, one, least) {
    n = split(target[r, variant], parts, ",")
    for (i = 1; i <= n; ++i) {
        one = one_limit(parts[i], r)
        if (one == "") return ""
        if (i == 1 || one < least) least = one
    }
    return least
}

function over(value, most) { return value != "" && most != "" && value > most }

# Adds a compiler to a list if it was measured there.
function list(names, r, variant) {
    if (!(key_of("weir", variant, r, size[r]) in run_count)) return names
    return names (variant == "gcc" ? " (g++)" : " (clang)")
}

function verdict(r, gcc, clang,    missed, open) {
    if (target_text(r) == "-") return "-"
    if (list(list("", r, "gcc"), r, "clang") == "" || limit(r, "gcc") == "") return "not measured"
    if (over(gcc, limit(r, "gcc"))) missed = list(missed, r, "gcc")
    if (over(clang, limit(r, "clang"))) missed = list(missed, r, "clang")
    if (missed != "") return "NO" missed
    if (gcc == "") open = list(open, r, "gcc")
    if (clang == "") open = list(open, r, "clang")
    return open == "" ? "yes" : "not settled" open
}

function cell(line, column, text) {
    cells[line, column] = text
    if (length(text) > width[column]) width[column] = length(text)
}

function print_table(lines, columns,    line, column, text, dashes) {
    for (line = 1; line <= lines; ++line) {
        text = "|"
        for (column = 1; column <= columns; ++column)
            text = text sprintf(column == 1 ? " %-*s |" : " %*s |", width[column],
                                cells[line, column])
        print text
        if (line > 1) continue
        text = "|"
        for (column = 1; column <= columns; ++column) {
            dashes = sprintf("%*s", width[column] + 1, "")
            gsub(/ /, "-", dashes)
            text = text (column == 1 ? ":" dashes : dashes ":") "|"
        }
        print text
    }
    for (column = 1; column <= columns; ++column) width[column] = 0
}

function header(names,    n, i, parts) {
    n = split(names, parts, ";")
    for (i = 1; i <= n; ++i) cell(1, i, parts[i])
    return n
}

# A floor is shown for scale, unless a target is made of it.
function compared(name,    r) {
    if (!(name in shown)) return 0
    if (name != "floor") return 1
    for (r = 1; r <= rows; ++r) if (target[r, "gcc"] ~ /^floor\//) return 1
    return 0
}

# Which peers have a column: those with a result in one of the rows.
function find_shown(    p, r) {
    for (p = 1; p <= peers; ++p)
        for (r = 1; r <= rows; ++r)
            if (key_of(peer[p], best_variant(peer[p], r, size[r]), r, size[r]) in run_count)
                shown[peer[p]] = 1
}

function print_targets(    p, r, line, column, gcc, clang) {
    find_shown()
    column = header("what;n;unit;weir g++;weir clang")
    for (p = 1; p <= peers; ++p) if (peer[p] in shown) cell(1, ++column, label[peer[p]])
    cell(1, ++column, "target"); cell(1, ++column, "holds")
    for (p = 1; p <= peers; ++p)
        if (compared(peer[p])) cell(1, ++column, label[peer[p]] "/weir")
    for (r = 1; r <= rows; ++r) {
        gcc = result("weir", "gcc", r, size[r])
        clang = result("weir", "clang", r, size[r])
        line = r + 1
        cell(line, 1, full_title(r)); cell(line, 2, short_size(size[r])); cell(line, 3, unit[r])
        cell(line, 4, text_of("weir", "gcc", r, size[r]))
        cell(line, 5, text_of("weir", "clang", r, size[r]))
        column = 5
        for (p = 1; p <= peers; ++p)
            if (peer[p] in shown)
                cell(line, ++column, text_of(peer[p], best_variant(peer[p], r, size[r]), r, size[r]))
        cell(line, ++column, target_text(r)); cell(line, ++column, verdict(r, gcc, clang))
        for (p = 1; p <= peers; ++p)
            if (compared(peer[p]))
                cell(line, ++column, ratio(best(peer[p], r, size[r]), worse(gcc, clang)))
    }
    print_table(rows + 1, column)
}

# In one placement only there is nothing to say about it.
function full_title(r,    others) {
    others = (r > 1 && row[r - 1] == row[r] && size[r - 1] == size[r]) || \
        (r < rows && row[r + 1] == row[r] && size[r + 1] == size[r])
    if (!others) return title[r]
    return title[r] (cores[r] == "one" ? ", one core" : cores[r] == "two" ? ", two cores" : ", free")
}

function each(r, variant, items,    value) {
    value = result("weir", variant, r, items)
    return value == "" || unit[r] != "ms" ? value : value * 1e6 / items
}

function grown(small, large) { return small == "" || large == "" || !small ? 0 : large / small }

function has_growth(    r) {
    for (r = 1; r <= rows; ++r) if (growth[r] != "-") return 1
    return 0
}

function print_growth(    r, line, columns, sizes, v, variant, column, s, most) {
    columns = header("cost per item;unit;from n;g++ n;10n;100n;clang n;10n;100n;flat (<= 1.5x)")
    line = 1
    per_item = 1
    for (r = 1; r <= rows; ++r) {
        if (growth[r] == "-") continue
        split(growth[r], sizes, ",")
        ++line; most = 0; column = 4
        cell(line, 1, full_title(r)); cell(line, 2, unit[r] == "ms" ? "ns" : unit[r])
        cell(line, 3, short_size(sizes[1]))
        for (v = 1; v <= 2; ++v) {
            variant = v == 1 ? "gcc" : "clang"
            for (s = 1; s <= 3; ++s) {
                cell(line, column++, text_of("weir", variant, r, sizes[s]))
                most = worse(most, grown(each(r, variant, sizes[1]), each(r, variant, sizes[s])))
            }
        }
        cell(line, columns, most == 0 ? "-" : (most <= 1.5 ? "yes, " : "NO, ") number(most) "x")
    }
    print_table(line, columns)
}

END {
    print_targets()
    if (has_growth()) {
        print ""
        print_growth()
    }
    if (differences != "") print "\nWhat differs between the sides:" differences
    if (unsettled_results > 0)
        printf "\n%d of the %d numbers did not settle: where there is a spread, the runs differ by " \
            "more than %.1fx.\n", unsettled_results, shown_results, settled_spread
}
