import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '../runner/usage-error.js';
import { drawChart } from './draw-chart.js';
import { readRun } from './read-run.js';
import { writeChart } from './write-chart.js';

const calls = { before: 10, young: 50, between: 140, old: 50 };
const costs = (youngMs: number, oldMs: number) => ({
  young: { cpuMs: youngMs, wallMs: 1 },
  old: { cpuMs: oldMs, wallMs: 1 },
});
const outcomes = [
  { adapter: 'floor', floor: 'floor', rounds: [costs(10, 4), costs(20, 8)] },
  { adapter: 'ai', floor: 'floor', rounds: [costs(30, 24), costs(80, 80)] },
  { adapter: 'millrace', floor: 'floor', rounds: [costs(20, 6), costs(40, 12)] },
  { adapter: 'mastra', floor: 'floor', rounds: [], failure: 'No luck.' },
  { adapter: 'floor-messages', floor: 'floor-messages', rounds: [costs(5, 2), costs(5, 2)] },
];
const result = (scenario: string, node = '20.20.2') => ({
  scenario,
  node,
  tables: [{ title: `(${scenario}) one & two`, about: '', columns: [], rows: [] }],
  failures: [],
  raw: { calls, outcomes },
});
const run = {
  machine: { date: '2026-01-31', cpu: 'Some <CPU>', cores: 2, memoryGb: 24, system: 'Linux 6' },
  versions: {
    bench: { openai: '6.49.0', libsql: '0.5.29' },
    ai: { ai: '7.0.1', zod: '4.6.7' },
  },
  rounds: 2,
  isSmall: false,
  results: [result('a'), result('b'), { ...result('d'), raw: 'of another shape' }],
};

const textsIn = (svg: string): readonly string[] =>
  [...svg.matchAll(/<text class="([^"]+)"[^>]*>([^<]*)<\/text>/g)].map(
    ([, kind, text]) => `${kind}: ${text}`,
  );
const barsIn = (svg: string, age: string): readonly number[] =>
  [...svg.matchAll(new RegExp(`<rect class="${age}" x="236"[^>]* width="([\\d.]+)"`, 'g'))].map(
    ([, width]) => Number(width),
  );

describe('a chart', () => {
  const svg = drawChart(readRun(run));

  it('has a panel for each scenario, a group for each floor, and rows from cheap to expensive', () => {
    expect(textsIn(svg).slice(0, 21)).toEqual([
      'title: CPU time of a call, as a ratio to a hand-written loop (less is better)',
      'label: young: a process that has just started',
      'label: old: a process that is warm',
      'panel: (a) one &amp; two',
      'caption: 1× is “hand-written, fetch”: 15.0 ms young, 6.00 ms old',
      'label end: hand-written, fetch',
      'value: 1.00×',
      'value: 1.00×',
      'label own end: Millrace, openai',
      'value: 2.00×',
      'value: 1.50×',
      'label end: Vercel AI SDK',
      'value: 3.50× (3.00× to 4.00×)',
      'value: 8.00× (6.00× to 10.0×)',
      'label end: Mastra',
      'value: failed',
      'caption: 1× is “fetch, Anthropic’s API”: 5.00 ms young, 2.00 ms old',
      'label end: fetch, Anthropic’s API',
      'value: 1.00×',
      'value: 1.00×',
      'panel: (b) one &amp; two',
    ]);
  });

  it('draws bars as long as their ratios, from zero', () => {
    const [floor = NaN, millrace, ai] = barsIn(svg, 'old');
    expect(millrace).toBeCloseTo(floor * 1.5);
    expect(ai).toBeCloseTo(floor * 8);
    expect(barsIn(svg, 'young')[2]).toBeCloseTo(floor * 3.5);
  });

  it('says where, when and with which versions', () => {
    const caption = textsIn(svg).slice(-8).join(' ').replaceAll(' caption: ', ' ');
    expect(caption).toContain(
      '2026-01-31, Node 20.20.2, Some &lt;CPU&gt;, 2 cores, 24 GB, Linux 6',
    );
    expect(caption).toContain('Young: calls 11 to 60 of a process; old: calls 201 to 250');
    expect(caption).toContain('Versions: openai 6.49.0; Vercel AI SDK: ai 7.0.1, zod 4.6.7.');
  });

  it('says everything in words', () => {
    expect(svg).toMatch(/role="img" aria-labelledby="title description"/);
    expect(svg).toMatch(/<title id="title">CPU time of a call/);
    const [, words] = /<desc id="description">([^<]*)<\/desc>/.exec(svg) ?? [];
    expect(words).toContain('Millrace, openai 2.00× young, 1.50× old; Vercel AI SDK 3.50× young');
    expect(words).toContain('Mastra failed');
  });

  it('is readable on light and dark pages', () => {
    expect(svg).toMatch(/<rect class="page" width="880"/);
    expect(svg).toContain('@media (prefers-color-scheme: dark)');
  });

  it('warns of a quick look', () => {
    expect(svg).not.toContain('mean nothing');
    expect(textsIn(drawChart(readRun({ ...run, isSmall: true })))[1]).toMatch(
      /^warning: .*these numbers mean nothing/,
    );
  });
});

describe('the numbers of a chart', () => {
  const both = { ...run, results: [result('a'), result('a', '24.21.0')] };

  it('are those of one Node', () => {
    expect(readRun(both, '24')).toMatchObject({ node: '24.21.0', panels: [{}] });
    expect(() => readRun(both)).toThrow(/--node`: 20.20.2, 24.21.0/);
    expect(() => readRun(both, '2')).toThrow(UsageError);
  });

  it.each([
    ['a list', [], /another version/],
    [
      'a run without what a chart shows',
      { ...run, results: [result('d')] },
      /no scenario a and no b/,
    ],
    [
      'numbers of another form',
      { ...run, results: [{ ...result('a'), raw: outcomes }] },
      /Another version/,
    ],
  ])('are refused of %s', (_, json, why) => {
    expect(() => readRun(json)).toThrow(why);
    expect(() => readRun(json)).toThrow(UsageError);
  });

  it('are not compared with a floor that failed', () => {
    const failed = { ...outcomes[0], rounds: [], failure: 'No.' };
    const raw = { calls, outcomes: [failed, ...outcomes.slice(1)] };
    const { panels } = readRun({ ...run, results: [{ ...result('a'), raw }] });
    expect(panels[0]?.groups[0]?.rows.map(({ bars }) => bars)).toEqual(Array(4).fill(undefined));
  });
});

describe('the command', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'bench-chart-'));
    writeFileSync(join(folder, 'all.json'), JSON.stringify(run));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('writes the chart beside the numbers, or to a given place', () => {
    const [json, svg, other] = ['all.json', 'all.svg', 'other.svg'].map((name) =>
      join(folder, name),
    );
    expect(writeChart([json ?? ''])).toBe(`Wrote ${svg}.`);
    expect(writeChart([json ?? '', '--node', '20', '--out', other ?? ''])).toBe(`Wrote ${other}.`);
    for (const file of [svg, other]) expect(readFileSync(file ?? '', 'utf8')).toMatch(/^<svg/);
  });

  it.each([
    ['no file', [], /one file/],
    ['two files', ['a', 'b'], /one file/],
    ['a missing file', ['no.json'], /no file of JSON/],
    ['the file itself as output', ['a.svg', '--out', 'a.svg'], /replace its numbers/],
    ['other options', ['--fast'], /--fast/],
  ])('refuses %s', (_, args, why) => {
    expect(() => writeChart(args)).toThrow(why);
  });
});
