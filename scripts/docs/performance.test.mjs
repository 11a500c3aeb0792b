import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { root } from '../workspaces.mjs';

/** The picture is drawn from one run, and says all its numbers in words. The tables are of the same run. */
const read = (file) => readFileSync(join(root, file), 'utf8');

/** The young and old ratio of each row of the picture, by panel. */
const drawn = () => {
  const [, words] = /<desc id="description">([^<]*)</.exec(read('docs/performance.svg'));
  const panels = words.split(/\([mno]\) /).slice(1);
  return panels.map(
    (panel) =>
      new Map(
        [...panel.matchAll(/(?:^.*?: \S+\. |; |\. )([^;×]+?) ([\d.]+)× young, ([\d.]+)× old/g)].map(
          ([, name, young, old]) => [name, { young: Number(young), old: Number(old) }],
        ),
      ),
  );
};

/** One digit after the point below 10, and none above. */
const rounded = (ratio) => (ratio < 10 ? ratio.toFixed(1) : ratio.toFixed(0));

/** The cells of each row of a table, by the name in its first cell. */
const tableOf = (file, heading) => {
  const lines = read(file).split('\n');
  const start = lines.findIndex((line) => line.startsWith('|') && line.includes(heading));
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'));
  const rows = lines.slice(start + 2, end).map((line) =>
    line
      .replaceAll(/[*`]/g, '')
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return new Map(rows.map(([name, ...cells]) => [name, cells]));
};

/** The names of rows in the tables that differ from those in the picture. */
const inPicture = new Map([
  ['Millrace', 'Millrace, openai'],
  ['AI SDK', 'Vercel AI SDK'],
  ['three interceptors', 'Millrace, three interceptors'],
  ['in devtools', 'Millrace, in devtools'],
  ['openai SDK by hand', 'hand-written, openai SDK'],
  ['Anthropic SDK by hand', 'hand-written, Anthropic SDK'],
]);

describe('the numbers of the picture of performance', () => {
  const panels = drawn();
  const ratiosOf = (name) => panels.map((panel) => panel.get(inPicture.get(name) ?? name));

  it('are there for each framework', () => {
    expect(panels.map(({ size }) => size)).toEqual([16, 16, 16]);
  });

  it('are those of README', () => {
    const table = tableOf('README.md', 'CPU, 8 turns');
    expect(table.size).toBe(5);
    for (const [name, cells] of table) {
      const young = ratiosOf(name)
        .map((ratio) => rounded(ratio.young))
        .slice(0, 2);
      expect([name, ...cells.slice(-2)]).toEqual([name, ...young]);
    }
  });

  it('are those of the page', () => {
    const table = tableOf('docs/performance.md', 'Ratio, young/old');
    expect(table.size).toBe(13);
    for (const [name, cells] of table) {
      const both = ratiosOf(name).map(({ young, old }) => `${rounded(young)}/${rounded(old)}`);
      expect([name, ...cells.slice(0, 3)]).toEqual([name, ...both]);
    }
  });

  it('are those of the missed targets', () => {
    const [eight, sixteen, delta] = ratiosOf('Millrace').map(
      ({ young, old }) => `${rounded(young)}/${rounded(old)}`,
    );
    const page = read('docs/performance.md');
    expect(page).toContain(`- **8 turns**: ${eight};`);
    expect(page).toContain(`- **4 turns of 16 tools**: ${sixteen};`);
    expect(page).toContain(`- **A delta**: ${delta};`);
  });
});
