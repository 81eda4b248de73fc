// Brings the page to life: reads its data, makes timeline and flame graph, connects them.
import { Model, LOST } from './model.js';
import { Timeline } from './timeline.js';
import { Flame } from './flame.js';
import { factsOf, tell } from './facts.js';
import { searchBox } from './search.js';
import { chainFacts, tailList } from './tails.js';
import { hue } from './colours.js';
import { element, timeText } from './words.js';

const KEYS = 'Keys, with the timeline in focus: + − or ↑ ↓ zoom, ← → move, 0 the whole, , . the neighbour of what is '
  + 'picked, Escape nothing. Drag to move, Ctrl+wheel to zoom, double click to look closer.';

const byId = (id) => document.getElementById(id);

function button(text, title, act) {
  const made = element('button', text, { type: 'button', title });
  made.addEventListener('click', act);
  return made;
}

/// What to open at: what was asked for, else the slowest packet or call with its neighbours.
function open(model, timeline, slowest) {
  const { focus } = model.data;
  if (focus) {
    const around = Math.max(200e3 / model.nsPerTick, (focus[1] - focus[0]) * 4);
    timeline.show(focus[0] - around, focus[1] + around);
    const item = itemAt(model, focus);
    if (item) timeline.pick(item);
  } else if (slowest.length > 0) timeline.pick(slowest[0]);
  else timeline.fit();
}

function itemAt(model, [from, to]) {
  if (from === to) return null;
  const p = model.packets;
  for (let id = 0; id < p.n; id++) if (p.begin[id] === from) return { kind: 'packet', id };
  return null;
}

/// Those of the slowest that the page holds one by one.
function slowestItems(model) {
  const items = model.data.slowest.map((slow) => {
    if (slow.seq !== null) return { kind: 'packet', id: model.packetWith(slow.seq, slow.stream) };
    for (const thread of model.threads) {
      const place = thread.calls[0]?.at(slow.begin, slow.begin + 1) ?? -1;
      if (place >= 0 && thread.calls[0].start[place] === slow.begin) return { kind: 'call', id: thread.calls[0].first + place };
    }
    return { kind: 'call', id: -1 };
  });
  return items.filter(({ id }) => id >= 0);
}

function tools(model, timeline, slowest) {
  let at = 0;
  const what = model.packets.n > 0 ? 'packet' : 'call';
  const next = (by) => () => {
    at = (at + by + slowest.length) % slowest.length;
    timeline.pick(slowest[at]);
  };
  const box = byId('tools');
  box.append(
    button('−', 'zoom out (−)', () => timeline.zoom(2)), button('+', 'zoom in (+)', () => timeline.zoom(0.5)),
    button('◀', 'earlier (←)', () => timeline.pan(-0.5)), button('▶', 'later (→)', () => timeline.pan(0.5)),
    button('whole', 'the whole recording (0)', () => timeline.fit()),
  );
  if (slowest.length > 0) {
    box.append(button(`slowest ${what}`, 'the slowest of the recording', () => { at = 0; timeline.pick(slowest[0]); }),
      button('next slower ›', 'one rank further down', next(1)));
  }
  const lost = [];
  for (let id = 0; id < model.packets.n && lost.length < 1000; id++) if (model.packets.flags[id] & LOST) lost.push(id);
  if (lost.length > 0) {
    let turn = -1;
    box.append(button('next lost', 'a packet that never arrived', () => {
      turn = (turn + 1) % lost.length;
      timeline.pick({ kind: 'packet', id: lost[turn] });
    }));
  }
  box.append(searchBox(model, (item) => {
    timeline.pick(item);
    timeline.canvas.focus({ preventScroll: true });
  }));
}

function legend(model) {
  const box = byId('legend');
  const entry = (cls, text) => {
    const made = element('span', text, { class: 'entry' });
    made.prepend(element('i', '', { class: cls }));
    return made;
  };
  const used = new Set(model.data.functions.map((f) => f.module));
  for (const module of model.data.modules) if (used.has(module.ix)) box.append(entry(`hue${hue(module.ix)}`, module.name));
  if (model.latency) {
    const { p50, high } = model.latency;
    box.append(entry('ramp', `latency up to ${timeText(model.ns(p50))} (median) … ${timeText(model.ns(high))} (slowest here)`));
  }
  if (model.packets.n > 0) box.append(entry('lost', 'lost'));
  box.append(element('p', KEYS));
}

async function start() {
  const data = JSON.parse(byId('data').textContent);
  const model = await Model.of(data);
  performance.mark('read');
  const flames = byId('flames');
  const boxes = { tip: byId('tip'), facts: byId('facts') };
  if (byId('lanes')) {
    const list = element('dl');
    boxes.facts.append(list);
    const hover = (item, x, y) => {
      boxes.tip.hidden = !item;
      if (!item) return;
      tell(boxes.tip, factsOf(model, item).slice(0, 5));
      const room = boxes.tip.parentElement.getBoundingClientRect();
      const width = Math.min(420, room.width);
      boxes.tip.style.left = `${Math.max(0, Math.min(x - room.left + 14, room.width - width))}px`;
      boxes.tip.style.top = `${y - room.top + 18}px`;
    };
    const nothing = [['picked', 'nothing yet: point at something, or click it to keep it here']];
    const pick = (item) => {
      const { chain } = timeline;
      const why = chain && item?.kind === 'packet' ? chainFacts(model, chain) : [];
      tell(list, item ? [...factsOf(model, item), ...why] : nothing, (to) => timeline.pick(to));
    };
    const timeline = new Timeline(model, byId('lanes'), byId('map'), hover, pick);
    const slowest = slowestItems(model);
    tell(list, nothing);
    if (byId('tails')) tailList(model, timeline, byId('tails'));
    tools(model, timeline, slowest);
    legend(model);
    open(model, timeline, slowest);
    timeline.drawNow();
    window.hopscope = { model, timeline };
  }
  if (flames) window.hopscope = { ...window.hopscope, flame: new Flame(model, flames) };
  performance.mark('drawn');
  document.documentElement.dataset.ready = 'yes';
}

start().catch((error) => {
  const box = byId('facts') ?? document.body;
  box.prepend(element('p', `The timeline cannot be drawn by this browser: ${error}`, { class: 'bad' }));
  document.documentElement.dataset.ready = 'failed';
  console.error(error);
});
