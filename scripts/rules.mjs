// The rules of docs/rules.md, each with the tests that prove it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { root } from './workspaces.mjs';

const help = `npm run rules -- [--check | --list] [id …]

Writes links to the tests of each rule into docs/rules.md. A test proves a rule if its title, or the title of a
describe around it, begins with the id of the rule: it('I5: …'), it('I5, X1: …').

  --check  writes nothing, and exits with 1 if a rule has no test, a test names a rule that does not exist, or the
           links are not to the files with most tests of each rule; numbers may be those of the last run
  --list   writes nothing, and prints each test of these rules, or of all rules
  --help   prints this text`;

const page = 'docs/rules.md';

/** The number of files that a rule links to: those with most of its tests. */
const linked = 3;

const folders = ['packages', 'conformance', 'bench', 'examples'];
const skipped = new Set(['node_modules', 'dist', 'temp', 'corpus']);

const testFilesIn = (folder) =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name);
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : testFilesIn(path);
    return /\.test\.(?:tsx?|mjs)$/.test(path) ? [path] : [];
  });

/** A title that begins with ids: after `it(`, after the table of an `it.each`, or on a line of its own. */
const titled =
  /(?:^\s*|\b(?:describe|it|test)\b.*\(|^\s*[\])].*\()(["'`])((?:[A-Z]\d+(?:, )?)+): ((?:(?!\1)[^\\]|\\.)*)\1/;
/** The start of a group of tests or of a test, which may depend on the platform or be in a loop. */
const start = /^\s*(?:for \(.*\) |\(\w+ \? )?(describe|it|test)(?:[.(<]| : )/;
const indentOf = (line) => line.length - line.trimStart().length;

/** The tests of a source that name rules, by line. The indentation shows which tests a `describe` contains. */
export function testsIn(source) {
  const lines = source.split('\n');
  const starts = lines.map((line) => start.exec(line)?.[1]);
  const isTest = (at) => starts[at] !== undefined && starts[at] !== 'describe';
  const testsWithin = (begin, title) => {
    const ends = (line, at) =>
      at > title && line !== '' && indentOf(line) <= indentOf(lines[begin]);
    const end = lines.findIndex(ends);
    return [...lines.keys()].filter((at) => at > title && at < end && isTest(at));
  };
  return lines.flatMap((line, index) => {
    const [, , ids, title] = titled.exec(line) ?? [];
    if (ids === undefined) return [];
    const begin = starts.findLastIndex(
      (kind, at) => kind !== undefined && at <= index && indentOf(lines[at]) <= indentOf(line),
    );
    if (begin === -1) return [];
    const tests = isTest(begin) ? [begin] : testsWithin(begin, index);
    return ids.split(', ').map((id) => ({ id, title, line: index + 1, tests }));
  });
}

/** The tests of each rule: by id, in each file, the lines in which they begin. */
function testsByRule(sources) {
  const rules = new Map();
  for (const [file, source] of sources) {
    for (const { id, title, line, tests } of testsIn(source)) {
      const files = rules.get(id) ?? new Map();
      const found = files.get(file) ?? { lines: new Set(), titles: [] };
      tests.forEach((test) => found.lines.add(test));
      found.titles.push({ line, title });
      rules.set(id, files.set(file, found));
    }
  }
  return rules;
}

/** A rule of the page: its id, its sentence, and the links below it. */
const rule = /^- \*\*([A-Z]\d+)\*\*: (.*)(?:\n {2}.*)*$/gm;

const labelOf = (file) => {
  const names = file.replace(/(\.[a-z]+)?\.test\.\w+$/, '').split('/');
  const folder = names.length > 2 && names[1] !== 'src' ? names[1] : names[0];
  return `${folder}/${names.at(-1)}`;
};

function linksTo(files) {
  const counts = [...files].map(([file, { lines }]) => ({ file, count: lines.size }));
  counts.sort((a, b) => b.count - a.count || (a.file < b.file ? -1 : 1));
  const links = counts.slice(0, linked).map(({ file }) => `[${labelOf(file)}](../${file})`);
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const more = counts.length - links.length;
  const list =
    links.join(', ') + (more > 0 ? ` and ${more} more ${more === 1 ? 'file' : 'files'}` : '');
  return `${total} ${total === 1 ? 'test' : 'tests'}: ${list}`;
}

/** So that not every new test has to change the page. */
const withoutCounts = (text) => text.replaceAll(/^ {2}\d+ tests?: | and \d+ more files?$/gm, '');

/** The page with the links of today, and what is wrong with it or with the tests, each with its fix. */
export function checked(text, sources) {
  const tests = testsByRule(sources);
  const ids = [...text.matchAll(rule)].map(([, id]) => id);
  const unproved = ids.filter((id) => !tests.has(id));
  const unlisted = [...tests].filter(([id]) => !ids.includes(id));
  const twice = ids.filter((id, index) => ids.indexOf(id) < index);
  return {
    page: text.replaceAll(rule, (whole, id, sentence) =>
      tests.has(id) ? `- **${id}**: ${sentence}\n  ${linksTo(tests.get(id))}` : whole,
    ),
    problems: [
      ...unproved.map(
        (id) =>
          `${page}: no test proves ${id}. Begin the title of a test with '${id}: ', or remove the rule.`,
      ),
      ...unlisted.flatMap(([id, files]) =>
        [...files].map(
          ([file, { titles }]) =>
            `${file}:${titles[0].line}: ${page} has no rule ${id}. Add "- **${id}**: …" there, or correct the title.`,
        ),
      ),
      ...twice.map((id) => `${page}: two rules are called ${id}. Give one of them another id.`),
    ],
  };
}

function main({ check, list }, ids) {
  const text = readFileSync(join(root, page), 'utf8');
  const sources = new Map(
    folders.flatMap(testFilesIn).map((file) => [file, readFileSync(join(root, file), 'utf8')]),
  );
  if (list) return printTests(testsByRule(sources), ids);
  const { page: current, problems } = checked(text, sources);
  if (check && withoutCounts(current) !== withoutCounts(text)) {
    problems.push(`${page} has other links than npm run rules would write. Run it.`);
  }
  if (!check && current !== text) writeFileSync(join(root, page), current);
  problems.forEach((problem) => console.error(problem));
  if (problems.length > 0) process.exitCode = 1;
}

function printTests(rules, ids) {
  const inOrder = [...rules.keys()].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  for (const id of inOrder.filter((each) => ids.length === 0 || ids.includes(each))) {
    console.log(id);
    for (const [file, { titles }] of rules.get(id)) {
      titles.forEach(({ line, title }) => console.log(`  ${file}:${line} ${title}`));
    }
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const flag = { type: 'boolean', default: false };
  const options = { check: flag, list: flag, help: flag };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  if (values.help) console.log(help);
  else main(values, positionals);
}
