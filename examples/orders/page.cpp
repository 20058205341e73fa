// SPDX-License-Identifier: MIT
// The page: HTML, style and script in one text. It hears /events and moves each order to the lane
// that its last event belongs to.
#include "front.hpp"

namespace shop {

namespace {

constexpr std::string_view text = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>orders</title>
<style>
:root {
  color-scheme: light dark;
  --ground: #f7f6f3; --lane: #efede8; --card: #ffffff; --ink: #22252a; --quiet: #666b73;
  --line: #dedad2; --accent: #2a6f97; --good: #3a7d44; --bad: #a4503f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #16181b; --lane: #1d2024; --card: #262a2f; --ink: #e4e6e8; --quiet: #9aa1a9;
    --line: #33383e; --accent: #7bb6d9; --good: #86c08e; --bad: #dd9483;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 1.5rem; background: var(--ground); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif;
}
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .5rem 1.5rem; }
h1 { font-size: 1.25rem; font-weight: 600; margin: 0; }
#state { color: var(--quiet); }
#state.down { color: var(--bad); }
main {
  display: grid; gap: .75rem; margin-top: 1.25rem;
  grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr));
}
section { background: var(--lane); border-radius: 10px; padding: .75rem; min-height: 12rem; }
h2 {
  display: flex; justify-content: space-between; margin: 0 0 .5rem;
  font-size: .85rem; font-weight: 600; color: var(--quiet);
}
article {
  background: var(--card); border: 1px solid var(--line); border-left: 3px solid var(--accent);
  border-radius: 7px; padding: .4rem .6rem; margin-bottom: .4rem; animation: arrive .35s ease-out;
}
article.good { border-left-color: var(--good); }
article.bad { border-left-color: var(--bad); }
article p { margin: 0; color: var(--quiet); font-size: .85rem; overflow-wrap: anywhere; }
button {
  font: inherit; font-size: .85rem; margin: .35rem .35rem .1rem 0; padding: .15rem .7rem;
  color: var(--ink); background: transparent; border: 1px solid var(--line); border-radius: 6px;
  cursor: pointer;
}
button:hover, button:focus-visible { border-color: var(--accent); }
footer { margin-top: 1.25rem; color: var(--quiet); font-size: .85rem; }
@keyframes arrive { from { opacity: 0; transform: translateY(-6px); } }
@media (prefers-reduced-motion: reduce) { article { animation: none; } }
</style>
</head>
<body>
<header><h1>orders</h1><span id="state" role="status">connecting</span></header>
<main id="lanes"></main>
<footer>Kill the shop with <code>kill -9</code> and start it again: this page connects by itself,
and every order goes on where it was.</footer>
<script>
'use strict';
const lanes = {
  taken: 'taken', person: 'waits for a person', packing: 'paid, being packed',
  shipped: 'shipped', undone: 'not shipped, undone',
};
const laneOf = {
  submit: 'taken', reserve: 'taken', capture: 'packing', ask: 'person', answer: 'packing',
  ship: 'shipped', refund: 'undone', release: 'undone',
};
const words = {
  submit: 'submitted', reserve: 'reserved', capture: 'paid', ask: 'waits for an approval',
  answer: 'answered', ship: 'shipped', refund: 'refunded', release: 'released',
};
const keep = 12;      // finished orders that stay visible
const known = {};     // element and lane by order
const count = {};     // element and number by lane

function add(parent, tag, text) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

for (const lane in lanes) {
  const section = add(document.getElementById('lanes'), 'section');
  section.id = lane;
  const title = add(section, 'h2');
  add(title, 'span', lanes[lane]);
  count[lane] = {element: add(title, 'span', '0'), total: 0};
  add(section, 'div');
}

// The first answer counts, so that one without a reply may be sent again.
async function answer(order, approved) {
  const said = {method: 'POST', body: JSON.stringify({approved})};
  for (let attempt = 0; attempt < 20; ++attempt) {
    const reply = await fetch('/approvals/' + encodeURIComponent(order), said).catch(() => null);
    if (reply && reply.status < 500) return;
    await new Promise(resolve => setTimeout(resolve, 500));
  }
}

function show(news) {
  const closed = news.what === 'close';
  const lane = closed ? (news.detail === 'shipped' ? 'shipped' : 'undone') : laneOf[news.what];
  if (!lane) return;
  const before = known[news.order];
  if (before) {
    before.element.remove();
    --count[before.lane].total;
  }
  const element = document.createElement('article');
  add(element, 'strong', news.order);
  const said = closed || news.what === 'ask' ? '' : news.detail;
  add(element, 'p', closed ? news.detail : words[news.what] + (said ? ': ' + said : ''));
  if (news.what === 'ask') {
    add(element, 'button', 'approve').onclick = () => answer(news.order, true);
    add(element, 'button', 'refuse').onclick = () => answer(news.order, false);
  }
  if (lane === 'shipped') element.className = 'good';
  if (lane === 'undone') element.className = 'bad';
  const list = document.querySelector('#' + lane + ' div');
  list.prepend(element);
  if (lane === 'shipped' || lane === 'undone')
    while (list.children.length > keep) list.lastChild.remove();
  known[news.order] = {element, lane};
  ++count[lane].total;
  for (const name in lanes) count[name].element.textContent = count[name].total;
}

const state = document.getElementById('state');
const events = new EventSource('/events');
events.onopen = () => { state.textContent = 'the shop is open'; state.className = ''; };
events.onerror = () => {
  state.textContent = 'the shop does not answer; trying again';
  state.className = 'down';
};
events.addEventListener('order', e => show(JSON.parse(e.data)));
</script>
</body>
</html>
)html";

}  // namespace

std::string_view page() { return text; }

}  // namespace shop
