# SPDX-License-Identifier: MIT
#
# Turns a layer's rows and the results into two markdown tables that are also readable as they are.
# First file: program, row, title, unit, size, target g++, target clang, growth sizes.
# Second file: who, variant, row, size, value, unit; one line per run.

# Whom weir is compared with, in the order of their columns; who has no result has no column.
BEGIN {
    peers = split("asio tbb caf erlang go node views sqlite floor", peer, " ")
    label["asio"] = "Asio"; label["tbb"] = "oneTBB"; label["caf"] = "CAF"
    label["erlang"] = "Erlang"; label["go"] = "Go"; label["node"] = "Node"
    label["views"] = "views"; label["sqlite"] = "SQLite"; label["floor"] = "floor"
}

FNR == NR && only != "" && $1 != only { next }

FNR == NR {
    ++rows
    row[rows] = $2; title[rows] = $3; unit[rows] = $4; size[rows] = $5
    target[rows, "gcc"] = $6; target[rows, "clang"] = $7; growth[rows] = $8
    next
}

{
    key = $1 SUBSEP $2 SUBSEP $3 SUBSEP $4
    values[key, ++count[key]] = $5 + 0
}

# The median over the runs, or "" if there was none.
function median(who, variant, name, items,    key, n, i, j, held, sorted) {
    key = who SUBSEP variant SUBSEP name SUBSEP items
    if (!(key in count)) return ""
    n = count[key]
    for (i = 1; i <= n; ++i) {
        held = values[key, i]
        for (j = i - 1; j >= 1 && sorted[j] > held; --j) sorted[j + 1] = sorted[j]
        sorted[j + 1] = held
    }
    # Of weir only: Go's scheduler varies tenfold by itself when it may use several cores.
    if (who == "weir" && sorted[1] > 0 && sorted[n] / sorted[1] > spread) {
        spread = sorted[n] / sorted[1]
        spread_of = name " (" variant ") at " short_size(items)
    }
    return sorted[int((n + 1) / 2)]
}

# A peer is shown at its best, so that no ratio owes anything to a bad choice of ours.
function best(who, name, items,    a, b) {
    a = median(who, who == "go" || who == "erlang" ? "one" : "gcc", name, items)
    b = median(who, who == "go" || who == "erlang" || who == "node" ? "all" : "clang", name, items)
    if (a == "" || (b != "" && b < a)) return b
    return a
}

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

function target_text(r,    gcc, clang, parts) {
    gcc = target[r, "gcc"]; clang = target[r, "clang"]
    if (gcc == "-" && clang == "-") return "-"
    if (split(gcc, parts, "/") == 2) return "<= " label[parts[1]] "/" parts[2]
    return gcc == clang ? "<= " gcc : "<= " gcc " g++, " clang " clang"
}

# A target is a number, or "peer/n": an n-th of what that peer needs in the same run. "" is unknown.
function limit(r, variant,    parts, theirs) {
    if (split(target[r, variant], parts, "/") < 2) return target[r, variant] + 0
    theirs = best(parts[1], row[r], size[r])
    return theirs == "" ? "" : theirs / parts[2]
}

function over(value, most) { return value != "" && most != "" && value > most }

function verdict(r, gcc, clang,    missed) {
    if (target_text(r) == "-") return "-"
    if ((gcc == "" && clang == "") || limit(r, "gcc") == "") return "not measured"
    if (over(gcc, limit(r, "gcc"))) missed = " (g++)"
    if (over(clang, limit(r, "clang"))) missed = missed " (clang)"
    return missed == "" ? "yes" : "NO" missed
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
            if (best(peer[p], row[r], size[r]) != "") shown[peer[p]] = 1
}

function print_targets(    p, r, line, column, gcc, clang) {
    find_shown()
    column = header("what;n;unit;weir g++;weir clang")
    for (p = 1; p <= peers; ++p) if (peer[p] in shown) cell(1, ++column, label[peer[p]])
    cell(1, ++column, "target"); cell(1, ++column, "holds")
    for (p = 1; p <= peers; ++p)
        if (compared(peer[p])) cell(1, ++column, label[peer[p]] "/weir")
    for (r = 1; r <= rows; ++r) {
        gcc = median("weir", "gcc", row[r], size[r])
        clang = median("weir", "clang", row[r], size[r])
        line = r + 1
        cell(line, 1, title[r]); cell(line, 2, short_size(size[r])); cell(line, 3, unit[r])
        cell(line, 4, number(gcc)); cell(line, 5, number(clang))
        column = 5
        for (p = 1; p <= peers; ++p)
            if (peer[p] in shown) cell(line, ++column, number(best(peer[p], row[r], size[r])))
        cell(line, ++column, target_text(r)); cell(line, ++column, verdict(r, gcc, clang))
        for (p = 1; p <= peers; ++p)
            if (compared(peer[p]))
                cell(line, ++column, ratio(best(peer[p], row[r], size[r]), worse(gcc, clang)))
    }
    print_table(rows + 1, column)
}

# The cost per item; a row in ms is a total.
function each(r, variant, items,    value) {
    value = median("weir", variant, row[r], items)
    return value == "" || unit[r] != "ms" ? value : value * 1e6 / items
}

function grown(small, large) { return small == "" || large == "" || !small ? 0 : large / small }

function print_growth(    r, line, columns, sizes, v, variant, column, n1, n10, n100, most) {
    columns = header("cost per item;unit;from n;g++ n;10n;100n;clang n;10n;100n;flat (<= 1.5x)")
    line = 1
    for (r = 1; r <= rows; ++r) {
        if (growth[r] == "-") continue
        split(growth[r], sizes, ",")
        ++line; most = 0; column = 4
        cell(line, 1, title[r]); cell(line, 2, unit[r] == "ms" ? "ns" : unit[r])
        cell(line, 3, short_size(sizes[1]))
        for (v = 1; v <= 2; ++v) {
            variant = v == 1 ? "gcc" : "clang"
            n1 = each(r, variant, sizes[1])
            n10 = each(r, variant, sizes[2])
            n100 = each(r, variant, sizes[3])
            cell(line, column++, number(n1))
            cell(line, column++, number(n10)); cell(line, column++, number(n100))
            most = worse(most, worse(grown(n1, n10), grown(n1, n100)))
        }
        cell(line, columns, most == 0 ? "-" : (most <= 1.5 ? "yes, " : "NO, ") number(most) "x")
    }
    print_table(line, columns)
}

END {
    print_targets()
    print ""
    print_growth()
    if (spread > 0)
        printf "\nLargest spread of weir between runs: %.2fx, %s. Above 1.3x, repeat.\n",
            spread, spread_of
}
