// Finding a function by part of its name, a packet by its number, a run by its number.
import { element, grouped, timeText } from './words.js';

const SHOWN = 12;

/// Lists of `{ text, item }` for what was typed.
export function find(model, typed) {
  const text = typed.trim();
  if (text === '') return [];
  const [, kind, number] = text.match(/^(packet|run)?\s*[:#]?\s*(\d+)$/i) ?? [];
  const found = [];
  if (number !== undefined) {
    const wanted = Number(number);
    if (kind?.toLowerCase() !== 'run') found.push(...packetsWith(model, wanted));
    if (kind?.toLowerCase() !== 'packet' && model.runAt.has(wanted)) {
      const id = model.runAt.get(wanted);
      found.push({ text: `run ${wanted}: ${timeText(model.ns(model.runs.ticks[id]))}`, item: { kind: 'run', id } });
    }
  }
  return [...found, ...functionsWith(model, text.toLowerCase())];
}

function packetsWith(model, seq) {
  const found = [];
  for (const stream of model.streams) {
    const id = model.packetWith(seq, stream.ix);
    if (id >= 0) found.push({ text: `packet ${seq} of ${stream.name}`, item: { kind: 'packet', id } });
  }
  return found;
}

/// Of each function its longest call.
function functionsWith(model, text) {
  const { functions } = model.data;
  const named = functions.map((f, i) => i).filter((i) => functions[i].name.toLowerCase().includes(text));
  if (named.length === 0) return [];
  const wanted = new Set(named);
  const { function: of, ticks } = model.calls;
  const longest = new Map();
  const count = new Map();
  for (let id = 0; id < of.length; id++) {
    if (!wanted.has(of[id])) continue;
    count.set(of[id], (count.get(of[id]) ?? 0) + 1);
    if (!(ticks[longest.get(of[id])] >= ticks[id])) longest.set(of[id], id);
  }
  return [...longest].sort((a, b) => ticks[b[1]] - ticks[a[1]]).map(([i, id]) => ({
    text: `${functions[i].name}: longest of ${grouped(count.get(i))} calls, ${timeText(model.ns(ticks[id]))}`,
    item: { kind: 'call', id },
  }));
}

export function searchBox(model, go) {
  const box = element('div', '', { class: 'search' });
  const input = element('input', '', {
    type: 'search', id: 'search', placeholder: 'function, packet 17, run 5', 'aria-label': 'search',
  });
  const list = element('ul', '', { id: 'found' });
  list.hidden = true;
  let found = [];
  input.addEventListener('input', () => {
    found = find(model, input.value);
    const lines = found.slice(0, SHOWN).map(({ text, item }) => {
      const button = element('button', text, { type: 'button' });
      button.addEventListener('click', () => {
        list.hidden = true;
        go(item);
      });
      const line = element('li');
      line.append(button);
      return line;
    });
    if (found.length > SHOWN) lines.push(element('li', `${found.length - SHOWN} more; type more of the name`));
    if (found.length === 0) lines.push(element('li', 'nothing of this name or number is in the page'));
    list.replaceChildren(...lines);
    list.hidden = input.value.trim() === '';
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') list.hidden = true;
    if (event.key !== 'Enter' || found.length === 0) return;
    list.hidden = true;
    go(found[0].item);
  });
  box.append(input, list);
  return box;
}
