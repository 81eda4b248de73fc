// Causes of late packets: an example leads to its packet, and the runs that it waited for are marked.
import { element } from './words.js';

/// What an example is on the timeline; null when the page does not hold its packet one by one.
function chainOf(model, { stream, seq, run, chain, culprit, story }, text) {
  const packet = model.packetWith(seq, stream);
  if (packet < 0) return null;
  const known = (ix) => ix !== null && model.runAt.has(ix);
  const runs = [...new Set([...chain, culprit, run])].filter(known).map((ix) => model.runAt.get(ix));
  return { packet, runs, culprit: known(culprit) ? model.runAt.get(culprit) : -1, text, story };
}

/// Makes causes and examples buttons.
export function tailList(model, timeline, box) {
  const { tails } = model.data;
  const buttons = [];
  const mark = (picked) => {
    for (const { button, chain } of buttons) button.setAttribute('aria-pressed', String(chain === picked));
  };
  const wire = (place, chain) => {
    const words = [...place.childNodes];
    const button = element('button', '', { type: 'button' });
    button.append(...words);
    place.replaceChildren(button);
    if (!chain) {
      button.disabled = true;
      button.title = 'not in the page one by one; --around packet:NUMBER makes a page of it';
      return;
    }
    buttons.push({ button, chain });
    button.addEventListener('click', () => timeline.pickChain(chain));
  };
  for (const place of box.querySelectorAll('[data-cause]')) {
    const { text, examples } = tails[Number(place.dataset.cause)];
    const example = examples[Number(place.dataset.example ?? 0)];
    if (example) wire(place, chainOf(model, example, text));
  }
  if (buttons.length > 0) box.querySelector('p').append(' Click a cause or an example to see it on the timeline.');
  timeline.onChain = mark;
  mark(null);
}

/// Facts of an example beside those of its packet.
export function chainFacts(model, { runs, culprit, text, story }) {
  const rows = [['late by', text], ...story.map((said) => ['because', said])];
  const shown = runs.slice(0, 8).map((id) => {
    const what = id === culprit ? 'began in' : 'chain';
    return [what, `run ${model.runs.ix[id]}`, { kind: 'run', id }];
  });
  return [...rows, ...shown];
}
