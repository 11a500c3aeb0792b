// The home page: its text is docs/site/.vitepress/home.md, and what it shows comes from README and the guide.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../workspaces.mjs';

const read = (...path) => readFileSync(join(root, ...path), 'utf8');

/** The first block of a text in a language. */
const blockOf = (text, language) =>
  new RegExp(`^\`\`\`${language}\\n[^]*?^\`\`\`$`, 'm').exec(text)[0];

/** The first test in marbles of the guide. */
const testOf = (text) => `\`\`\`ts\n${/^marbles\([^]*?^\}\);$/m.exec(text)[0]}\n\`\`\``;

/** The lanes of the marble diagram in README, each a name and its cells, and how long the call took. */
export function lanesOf(text) {
  const [block] = /^```text\nreasoning [^]*?^```$/m.exec(text);
  const lines = block.split('\n').slice(1, -1);
  const lanes = lines.flatMap((line) => {
    const [, name, cells] = /^(\S+) +([─·|a-z]+)(?: {2,}.*)?$/.exec(line) ?? [];
    return name === undefined || name === '0' ? [] : [{ name, cells }];
  });
  const [, ms] = / (\d+) ms/.exec(block);
  return { lanes, ms: Number(ms) };
}

/** The frameworks of the table in README, and their CPU time as a ratio to a hand-written loop. */
export function costsOf(text) {
  const rows = [...text.matchAll(/^\| (\S[^|]*?) +\|[^|]*\|[^|]*\| +(\S+) \| +(\S+) \|$/gm)];
  const number = (cell) => Number(cell.replaceAll('*', ''));
  return rows.flatMap(([, name, turns]) =>
    Number.isNaN(number(turns)) ? [] : [{ name: name.replaceAll('*', ''), ratio: number(turns) }],
  );
}

function chart(costs) {
  const most = Math.max(...costs.map(({ ratio }) => ratio));
  const row = ({ name, ratio }, index) => {
    const width = ((ratio / most) * 100).toFixed(1);
    const own = index === 0 ? ' class="own"' : '';
    return `<tr${own}><th scope="row">${name}</th><td><span class="bar" style="--ratio: ${width}%"></span>${ratio.toFixed(1)}×</td></tr>`;
  };
  return [
    '<table class="costs">',
    '<caption>CPU time of a call with 8 turns, as a ratio to a hand-written loop</caption>',
    ...costs.map(row),
    '</table>',
  ].join('\n');
}

/** The text of the home page, with its blocks, and with the call that it plays in its front matter. */
export function homePage() {
  const readme = read('README.md');
  return read('docs/site/.vitepress/home.md')
    .replaceAll(/<!-- block: README\.md (\w+) -->/g, (_, language) => blockOf(readme, language))
    .replace('<!-- test: docs/guide.md -->', () => testOf(read('docs/guide.md')))
    .replace('<!-- chart: README.md -->', () => chart(costsOf(readme)))
    .replace('# call: README.md', () => `call: ${JSON.stringify(lanesOf(readme))}`);
}
