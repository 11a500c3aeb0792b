import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { TestScheduler } from 'rxjs/testing';
import { drawRooms } from './rooms.mjs';
import { root } from './workspaces.mjs';

const help = `node scripts/diagrams.mjs [--check]

Draws the marble diagrams of docs/flow-control.md into docs/diagrams, from the marbles that the tests run,
and the rooms of core into ARCHITECTURE.md, from their imports.

  --check   writes nothing, and fails where a picture is not as it would be drawn`;

const source = join(root, 'packages/millrace/dist/operators/diagrams.test-support.js');
const target = join(root, 'docs/diagrams');

const frame = 26;
const rowHeight = 46;
const left = 104;
const top = 46;
const radius = 11;

const style = `
    text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328; }
    .title { font-weight: 600; }
    .label { fill: #59636e; }
    .mark { text-anchor: middle; dominant-baseline: central; font-size: 12px; }
    .line, .end { stroke: #818b98; stroke-width: 1.5; fill: none; }
    .end { stroke-width: 2.5; }
    .fault { stroke: #cf222e; stroke-width: 2.5; }
    .delta { fill: #ddf4ff; stroke: #0969da; stroke-width: 1.5; }
    .structural { fill: #fff8c5; stroke: #9a6700; stroke-width: 1.5; }
    .open { fill: #dafbe1; stroke: #1a7f37; stroke-width: 1.5; }
    .closed { fill: #ffebe9; stroke: #cf222e; stroke-width: 1.5; }
    .together { fill: none; stroke: #818b98; stroke-dasharray: 3 3; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .label { fill: #9198a1; }
      .delta { fill: #0c2d6b; stroke: #4493f8; }
      .structural { fill: #3b2300; stroke: #d29922; }
      .open { fill: #04260f; stroke: #3fb950; }
      .closed { fill: #3c0614; stroke: #f85149; }
    }`;

/** What happens in a row, and when: in frames. */
function happenings({ marbles, values = {} }) {
  const parsed = TestScheduler.parseMarbles(marbles, undefined, undefined, false, true);
  const seen = new Map();
  return parsed.map(({ frame: time, notification: { kind, value } }) => {
    const at = time / TestScheduler.frameTimeFactor;
    const nth = seen.get(at) ?? 0;
    seen.set(at, nth + 1);
    return { at, nth, kind, text: kind === 'N' ? (values[value] ?? value) : '' };
  });
}

/** The frames of a row, with what stands beside one another because it happens at once. */
const lengthOf = (row) => Math.max(...happenings(row).map(({ at, nth }) => at + nth), 0) + 1;

const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function drawMark({ at, nth, kind, text }, y) {
  const x = left + (at + nth) * frame;
  if (kind === 'C') return `<path class="end" d="M${x} ${y - 14}V${y + 14}"/>`;
  if (kind === 'E') {
    return `<path class="fault" d="M${x - 8} ${y - 8}l16 16m0-16l-16 16"/>`;
  }
  const half = Math.max(radius, text.length * 4 + 6);
  const isStructural = /^[A-Z]/.test(text);
  const shape = `x="${x - half}" y="${y - radius}" width="${2 * half}" height="${2 * radius}"`;
  return [
    `<rect class="${isStructural ? 'structural' : 'delta'}" ${shape} rx="${isStructural ? 3 : radius}"/>`,
    `<text class="mark" x="${x}" y="${y}">${escaped(text)}</text>`,
  ].join('');
}

/** A dashed frame around values that come at once. */
function drawTogether(marks, y) {
  const values = marks.filter(({ kind }) => kind === 'N');
  const last = new Map(values.map(({ at, nth }) => [at, nth]));
  return [...last]
    .filter(([, nth]) => nth > 0)
    .map(([at, nth]) => {
      const x = left + at * frame - 17;
      return `<rect class="together" x="${x}" y="${y - 18}" width="${nth * frame + 34}" height="36" rx="18"/>`;
    });
}

/** A row that says which level holds from when on. */
function drawLevels(marks, y, length) {
  return marks.map(({ at, text }, index) => {
    const until = marks[index + 1]?.at ?? length;
    const width = (until - at) * frame;
    const x = left + at * frame - frame / 2;
    const name =
      width > text.length * 8
        ? `<text class="mark" x="${x + width / 2}" y="${y}">${text}</text>`
        : '';
    return `<rect class="${text}" x="${x}" y="${y - 10}" width="${width}" height="20"/>${name}`;
  });
}

function drawRow(row, index, length) {
  const y = top + rowHeight * index + rowHeight / 2;
  const marks = happenings(row);
  const isLevel = marks.every(({ text }) => text === 'open' || text === 'closed');
  const own = isLevel ? length : lengthOf(row);
  const end = left + (Math.max(own, 1) - 0.2) * frame;
  const line = `<path class="line" d="M${left - frame / 2} ${y}H${end}"/>`;
  const drawn = isLevel
    ? drawLevels(marks, y, length)
    : [line, ...drawTogether(marks, y), ...marks.map((mark) => drawMark(mark, y))];
  return [`<text class="label" x="8" y="${y + 4}">${escaped(row.label)}</text>`, ...drawn];
}

function draw({ title, explanation, rows }) {
  const all = Object.values(rows);
  const length = Math.max(...all.map(lengthOf));
  const width = Math.max(left + (length + 0.5) * frame, title.length * 8 + 16);
  const height = top + rowHeight * all.length + 8;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title explanation">`,
    `  <title id="title">${escaped(title)}</title>`,
    `  <desc id="explanation">${escaped(explanation)}</desc>`,
    `  <style>${style}\n  </style>`,
    `  <text class="title" x="8" y="26">${escaped(title)}</text>`,
    ...all.flatMap((row, index) => drawRow(row, index, length)).map((line) => `  ${line}`),
    '</svg>',
    '',
  ].join('\n');
}

async function drawAll() {
  if (!existsSync(source)) throw new Error('The packages are not built: run npm run build first.');
  const { diagrams } = await import(pathToFileURL(source));
  return new Map(diagrams.map((diagram) => [`${diagram.name}.svg`, draw(diagram)]));
}

const present = () =>
  existsSync(target) ? readdirSync(target).filter((name) => name.endsWith('.svg')) : [];

const read = (name) => {
  const file = join(target, name);
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
};

const page = join(root, 'ARCHITECTURE.md');

/** The page, with the rooms as they are. */
function withRooms(text) {
  const parts = text.split(/(?<=<!-- rooms -->\n)[^]*(?=<!-- \/rooms -->)/);
  if (parts.length !== 2) throw new Error('ARCHITECTURE.md has no place for the rooms.');
  return parts.join(`\n${drawRooms()}\n\n`);
}

function check(pictures) {
  const text = readFileSync(page, 'utf8');
  const isDrawn = withRooms(text) === text;
  if (!isDrawn) console.error('ARCHITECTURE.md does not show the rooms as they are.');
  const names = new Set([...pictures.keys(), ...present()]);
  const stale = [...names].filter((name) => pictures.get(name) !== read(name));
  for (const name of stale) console.error(`docs/diagrams/${name} is not as it would be drawn.`);
  if (stale.length === 0 && isDrawn) return 0;
  console.error('Run npm run diagrams.');
  return 1;
}

function write(pictures) {
  mkdirSync(target, { recursive: true });
  for (const name of present()) if (!pictures.has(name)) rmSync(join(target, name));
  for (const [name, picture] of pictures) writeFileSync(join(target, name), picture);
  writeFileSync(page, withRooms(readFileSync(page, 'utf8')));
  console.log(`${pictures.size} pictures in docs/diagrams, and the rooms in ARCHITECTURE.md.`);
  return 0;
}

try {
  const options = { check: { type: 'boolean' }, help: { type: 'boolean' } };
  const { values } = parseArgs({ options });
  if (values.help) console.log(help);
  else process.exitCode = (values.check ? check : write)(await drawAll());
} catch (error) {
  console.error(`${error.message}\n\n${help}`);
  process.exitCode = 2;
}
