import { oldCalls, youngCalls } from '../scenarios/calls-scenario.js';
import { shown } from '../runner/show.js';
import { wrapped } from '../table.js';
import type { Bar, Group, Panel, Row, Run } from './read-run.js';

const width = 880;
const margin = 24;
/** Where bars begin, and how wide the widest may be: its value stands after it. */
const barsAt = 236;
const barsWidth = 490;
const rowHeight = 32;
const barHeight = 12;
const lineHeight = 17;
/** Characters of a caption that surely fit into the width. */
const captionLength = 128;

/** Draws the ratios of a run: a panel for each scenario, two bars for each adapter, and what was measured where. */
export const drawChart = (run: Run): string => {
  const scale = barsWidth / Math.max(1, ...run.panels.flatMap(barsOf).map(({ most }) => most));
  const drawing = new Drawing();
  drawing.text(margin, 'title', heading);
  drawing.space(4);
  for (const line of warningOf(run)) drawing.text(margin, 'warning', line);
  drawing.legend();
  for (const panel of run.panels) drawPanel(drawing, panel, scale);
  drawing.space(lineHeight / 2);
  for (const line of captionOf(run)) drawing.text(margin, 'caption', line);
  return drawing.svg(heading, descriptionOf(run));
};

const heading = 'CPU time of a call, as a ratio to a hand-written loop (less is better)';

const warningOf = ({ isSmall }: Run): readonly string[] =>
  isSmall ? ['A quick look (--small): these numbers mean nothing.'] : [];

const drawPanel = (drawing: Drawing, { title, groups }: Panel, scale: number): void => {
  drawing.space(lineHeight);
  drawing.text(margin, 'panel', title);
  for (const group of groups) {
    drawing.text(margin, 'caption', floorOf(group));
    drawing.rows(group.rows, scale);
  }
};

const floorOf = ({ floor, youngMs, oldMs }: Group): string =>
  `1× is “${labelOf(floor)}”: ${shown(youngMs)} ms young, ${shown(oldMs)} ms old`;

/** What adapters are called in the documentation. Others keep their names. */
const labels = new Map([
  ['floor', 'hand-written, fetch'],
  ['openai-sdk', 'hand-written, openai SDK'],
  ['millrace', 'Millrace, openai'],
  ['millrace-interceptors', 'Millrace, three interceptors'],
  ['millrace-devtools', 'Millrace, in devtools'],
  ['millrace-devtools-page', 'Millrace, watched in devtools'],
  ['floor-messages', 'fetch, Anthropic’s API'],
  ['anthropic-sdk', 'hand-written, Anthropic SDK'],
  ['millrace-anthropic', 'Millrace, anthropic'],
  ['ai', 'Vercel AI SDK'],
  ['langgraph', 'LangGraph'],
  ['mastra', 'Mastra'],
  ['openai-agents', 'OpenAI Agents'],
  ['strands', 'Strands'],
  ['tanstack', 'TanStack AI'],
  ['voltagent', 'VoltAgent'],
]);

const labelOf = (adapter: string): string => labels.get(adapter) ?? adapter;

const barsOf = ({ groups }: Panel): readonly Bar[] =>
  groups.flatMap(({ rows }) => rows).flatMap(({ bars }) => (bars ? [bars.young, bars.old] : []));

const ratio = (value: number): string => `${shown(value)}×`;

const captionOf = ({
  machine,
  node,
  rounds,
  versions,
  panels: [first],
}: Run): readonly string[] => {
  const { date, cpu, cores, memoryGb, system } = machine;
  const ages = first
    ? `Young: ${youngCalls(first.calls)} of a process; old: ${oldCalls(first.calls)} of the same process. `
    : '';
  return [
    `${date}, Node ${node}, ${cpu}, ${cores} cores, ${memoryGb} GB, ${system}. Rounds: ${rounds}, each in new processes.`,
    `${ages}A bar is the median of the ratios of all rounds, each to the hand-written loop of the same round; the line on it is their range.`,
    'The model is a mock on the same machine. Beside a real model, which takes seconds, these milliseconds are small.',
    `Versions: ${Object.entries(versions).map(versionsOf).filter(Boolean).join('; ')}.`,
  ].flatMap((line) => wrapped(line, captionLength).split('\n'));
};

/** Stores are not in these scenarios. */
const isShown = (name: string): boolean => !/^libsql$|^@millrace\/store$/.test(name);

const versionsOf = ([user, packages]: readonly [
  string,
  Readonly<Record<string, string>>,
]): string => {
  const list = Object.entries(packages)
    .filter(([name]) => isShown(name))
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
  return user === 'bench' || list === '' ? list : `${labelOf(user)}: ${list}`;
};

/** All numbers in words, for those who do not see the chart. */
const descriptionOf = (run: Run): string =>
  [
    ...warningOf(run),
    ...run.panels.map(
      ({ title, groups }) =>
        `${title}. ${groups.flatMap(({ rows }) => rows.map(rowInWords)).join('; ')}.`,
    ),
  ].join(' ');

const rowInWords = ({ adapter, bars }: Row): string =>
  bars === undefined
    ? `${labelOf(adapter)} failed`
    : `${labelOf(adapter)} ${ratio(bars.young.median)} young, ${ratio(bars.old.median)} old`;

/** An SVG that grows downwards. It has its own background, so it is readable on any page. */
class Drawing {
  readonly #parts: string[] = [];
  #y = margin;

  space(height: number): void {
    this.#y += height;
  }

  text(x: number, className: string, content: string): void {
    this.#y += lineHeight;
    this.#parts.push(textAt(x, this.#y, className, content));
  }

  legend(): void {
    this.#y += lineHeight * 1.5;
    for (const [index, [age, meaning]] of [
      ['young', 'young: a process that has just started'],
      ['old', 'old: a process that is warm'],
    ].entries()) {
      const x = margin + index * 290;
      this.#parts.push(
        `<rect class="${age}" x="${x}" y="${this.#y - barHeight + 2}" width="${barHeight}" height="${barHeight}"/>`,
        textAt(x + barHeight + 6, this.#y, 'label', meaning ?? ''),
      );
    }
  }

  rows(rows: readonly Row[], scale: number): void {
    this.space(8);
    const top = this.#y;
    for (const row of rows) {
      this.#row(row, scale);
      this.space(rowHeight);
    }
    const x = barsAt + scale;
    this.#parts.push(
      `<line class="one" x1="${round(x)}" x2="${round(x)}" y1="${top}" y2="${this.#y - 4}"/>`,
    );
  }

  svg(title: string, description: string): string {
    const height = Math.round(this.#y + margin);
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">`,
      `<title id="title">${escaped(title)}</title>`,
      `<desc id="description">${escaped(description)}</desc>`,
      `<style>${style}</style>`,
      `<rect class="page" width="${width}" height="${height}" rx="8"/>`,
      ...this.#parts,
      '</svg>\n',
    ].join('\n');
  }

  #row({ adapter, bars }: Row, scale: number): void {
    const label = adapter.startsWith('millrace') ? 'label own' : 'label';
    this.#parts.push(
      `<g class="row">`,
      textAt(barsAt - 10, this.#y + barHeight + 4, `${label} end`, labelOf(adapter)),
    );
    if (bars === undefined) {
      this.#parts.push(
        textAt(round(barsAt + scale + 6), this.#y + barHeight + 4, 'value', 'failed'),
      );
    } else {
      this.#bar('young', bars.young, this.#y, scale);
      this.#bar('old', bars.old, this.#y + barHeight + 1, scale);
    }
    this.#parts.push('</g>');
  }

  #bar(age: string, { median, least, most }: Bar, y: number, scale: number): void {
    const [low, high] = [barsAt + least * scale, barsAt + most * scale];
    const middle = y + barHeight / 2;
    const range = least === most ? '' : ` (${ratio(least)} to ${ratio(most)})`;
    this.#parts.push(
      `<rect class="${age}" x="${barsAt}" y="${y}" width="${round(median * scale)}" height="${barHeight}"/>`,
      `<line class="range" x1="${round(low)}" x2="${round(high)}" y1="${middle}" y2="${middle}"/>`,
      textAt(round(high + 6), y + barHeight - 2, 'value', `${ratio(median)}${range}`),
    );
  }
}

const textAt = (x: number, y: number, className: string, content: string): string =>
  `<text class="${className}" x="${x}" y="${y}">${escaped(content)}</text>`;

const round = (value: number): number => Math.round(value * 10) / 10;

const escaped = (text: string): string =>
  text.replace(/[&<>]/g, (sign) => (sign === '&' ? '&amp;' : sign === '<' ? '&lt;' : '&gt;'));

const style = `
  text { font-family: system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328; }
  .page { fill: #ffffff; }
  .title { font-size: 18px; font-weight: 600; }
  .panel { font-size: 14px; font-weight: 600; }
  .label { font-size: 12.5px; }
  .own { font-weight: 700; }
  .end { text-anchor: end; }
  .value { font-size: 11px; }
  .caption { font-size: 11.5px; fill: #59636e; }
  .warning { font-size: 14px; font-weight: 700; fill: #c62828; }
  .young { fill: #d9730d; }
  .old { fill: #0969da; }
  .range { stroke: #1f2328; stroke-width: 2; }
  .one { stroke: #59636e; stroke-dasharray: 3 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .page { fill: #0d1117; }
    .caption { fill: #9198a1; }
    .warning { fill: #ff7b72; }
    .young { fill: #e3923a; }
    .old { fill: #4493f8; }
    .range { stroke: #e6edf3; }
    .one { stroke: #9198a1; }
  }
`;
