// The flame graph: the call tree, callees below their caller, width by total time.
import { hue } from './colours.js';
import { element, grouped, timeText } from './words.js';

const SVG = 'http://www.w3.org/2000/svg';
const LEVEL = 19;

export class Flame {
  constructor(model, box) {
    Object.assign(this, { model, box, flame: model.data.flame });
    this.children = this.flame.nodes.map(() => []);
    this.top = [];
    this.flame.nodes.forEach((node, i) => (node.parent < 0 ? this.top : this.children[node.parent]).push(i));
    const largest = (a, b) => this.flame.nodes[b].ticks - this.flame.nodes[a].ticks;
    [this.top, ...this.children].forEach((list) => list.sort(largest));
    this.root = -1;
    this.facts = element('p', '', { id: 'flame-facts' });
    box.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.show(this.root < 0 ? -1 : this.flame.nodes[this.root].parent);
    });
    new ResizeObserver(() => {
      if (box.clientWidth !== this.width) this.draw();
    }).observe(box);
    this.draw();
  }

  show(root) {
    this.root = root;
    this.draw();
  }

  draw() {
    this.width = this.box.clientWidth;
    const { nodes, whole } = this.flame;
    const svg = document.createElementNS(SVG, 'svg');
    const total = this.root < 0 ? whole : nodes[this.root].ticks;
    let depth = 0;
    const place = (i, x, level, room) => {
      const width = Math.min(room, (nodes[i].ticks / total) * this.width);
      if (width < 0.5) return width;
      depth = Math.max(depth, level + 1);
      svg.append(this.block(i, x, level, width, total));
      let at = x;
      for (const child of this.children[i]) at += place(child, at, level + 1, x + width - at);
      return width;
    };
    const path = [];
    for (let i = this.root; i >= 0; i = nodes[i].parent) path.unshift(i);
    // Callers of what is looked at keep their place above it, as wide as the page.
    path.slice(0, -1).forEach((i, level) => svg.append(this.block(i, 0, level, this.width, nodes[i].ticks, true)));
    let at = 0;
    const from = this.root < 0 ? this.top : [this.root];
    for (const i of from) at += place(i, at, Math.max(0, path.length - 1), this.width - at);
    svg.setAttribute('width', this.width);
    svg.setAttribute('height', depth * LEVEL);
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', 'flame graph');
    const { hidden, hidden_ticks: ticks } = this.flame;
    const rest = hidden === 0 ? [] : [element('p',
      `${grouped(hidden)} paths are too narrow to be drawn; their own time is ${timeText(this.model.ns(ticks))} together.`)];
    this.box.replaceChildren(svg, this.facts, ...rest);
  }

  block(i, x, level, width, total, above = false) {
    const node = this.flame.nodes[i];
    const group = document.createElementNS(SVG, 'g');
    group.setAttribute('class', above ? 'above' : `hue${hue(node.module)}`);
    group.setAttribute('tabindex', '0');
    group.dataset.name = node.name;
    const rect = document.createElementNS(SVG, 'rect');
    const at = { x: x.toFixed(2), y: level * LEVEL, width: Math.max(0.5, width - 0.6).toFixed(2), height: LEVEL - 1 };
    for (const [name, value] of Object.entries(at)) rect.setAttribute(name, value);
    group.append(rect);
    const most = Math.floor((width - 6) / 6.3);
    if (most >= 3) {
      const text = document.createElementNS(SVG, 'text');
      text.setAttribute('x', (x + 4).toFixed(2));
      text.setAttribute('y', level * LEVEL + 13);
      text.textContent = node.name.length <= most ? node.name : `${node.name.slice(0, most - 1)}…`;
      group.append(text);
    }
    const words = this.words(node, total);
    const title = document.createElementNS(SVG, 'title');
    title.textContent = words;
    group.append(title);
    for (const event of ['pointerenter', 'focus']) group.addEventListener(event, () => { this.facts.textContent = words; });
    group.addEventListener('click', () => this.show(i));
    group.addEventListener('keydown', (event) => { if (event.key === 'Enter') this.show(i); });
    return group;
  }

  words(node) {
    const ns = (ticks) => timeText(this.model.ns(ticks));
    const part = ((node.ticks / this.flame.whole) * 100).toFixed(1);
    const module = this.model.modules.get(node.module)?.name ?? 'unknown module';
    const callers = node.callers ? `; callers ${node.callers}` : '';
    return `${node.name} (${module}): ${ns(node.ticks)} in ${grouped(node.calls)} calls, ${part} % of all; `
      + `${ns(node.self)} itself; longest ${ns(node.max)}${callers}`;
  }
}
