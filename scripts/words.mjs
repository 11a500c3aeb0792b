// Finds words that make prose read as translated: in names, comments, messages and prompts of the packages, and in docs.
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import ts from 'typescript';
import { root } from './workspaces.mjs';

const help = `npm run words -- [--docs] [path …]

Lists the words that make prose read as translated, with what to write instead, and exits with 1 if there are any.
It reads names, comments and strings of the packages, and the titles of all tests.

  path    only files whose path starts with it
  --docs  reads the Markdown files of the project in place of the packages
  --help  prints this text`;

/** What to look for in prose, and what to write instead. */
const phrases = [
  [/\bbehind\b(?! (?:an?|the|your) (?:\w+ )?(?:proxy|firewall|load balancer|flag))/i, 'after'],
  [/\b(?:tells?|told|telling)\b/i, 'report, emit, show, say to whom'],
  [/\b(?:whoever|whatever|whichever)\b/i, 'name who or what it is'],
  [/\b(?:nobody|somebody|anybody)\b/i, 'no one, or name the caller, the user, the listener'],
  [/\b(?:is|are|was|were) none\b/i, 'there is no …, … does not exist'],
  [/\b(?:says?|said|saying) (?:so|which|itself)\b/i, 'name what is reported, and how'],
  [/\b(?:go|goes|gone|going|went) on\b/i, 'continue, resume'],
  [/\banew\b/i, 'again'],
  [/\bof (?:which|whom)\b/i, 'split the sentence'],
  [/\b(?:break|breaks|broke|broken|breaking) off\b/i, 'stop, interrupt, abort'],
  [/\blets? (?:go|out)\b/i, 'release'],
  [/\bc[ao]mes? of (?:it|them)\b/i, 'the result'],
  [
    /\ba text\b(?! (?:block|part|file|editor|message|delta|protocol|column|field))/i,
    'a string, text',
  ],
  [/\bat most\b(?! once)/i, 'up to, a maximum of'],
  [/\bat once\b(?! (?:in|by|with)\b)/i, 'immediately, at the same time'],
  [/\b(?:write|writes|wrote|written|writing) down\b/i, 'record, persist'],
  [/\bas good as\b/i, 'the same as, treated as'],
  [/\b(?:go|goes|went|going) before\b/i, 'take precedence over, precede'],
  [/\bjust now\b/i, 'right now'],
  [
    /\bwhere (?:it|there|that|this|none|nothing|no|one|some|they|the|an?) /i,
    'if, when; for a place: in which',
  ],
  [/\b(?:make|makes|made) of (?:it|them|what)\b/i, 'the result of'],
  [/\bso that\b[^.;:]*\bso that\b/i, 'one "so that" a sentence'],
];

/** How a doc comment must not begin: such a comment renames its symbol, or hides the verb. */
const beginnings = [
  [/^What\b/, 'say it with a noun or a verb: "The …", "Returns …"'],
  [/^Tells\b/, 'Reports, Returns, Emits'],
  [/^Says\b/, 'Reports, Returns, Describes'],
];

/** Words that no name has. */
const names = /^(?:behind|told|tell|tells|whoever|anew|goes|nobody|somebody|says?|said)$/;

/** Files whose strings are data: patterns of attacks, stop words. */
const withData = new Set([
  'packages/millrace/src/layers/guards/injection-heuristic.ts',
  'packages/millrace/src/values/words.ts',
]);

const isTest = (file) => /\.test(-d|-support|-data)?\.tsx?$/.test(file);
const read = (file) => readFileSync(join(root, file), 'utf8');

const filesIn = (folder, pattern) =>
  readdirSync(join(root, folder), { recursive: true })
    .map((file) => posix.join(folder, file.replaceAll('\\', '/')))
    .filter((file) => pattern.test(file) && !/(^|\/)(node_modules|dist|temp|etc)\//.test(file))
    .sort();

const find = (list, text) =>
  list.flatMap(([pattern, instead]) => {
    const found = pattern.exec(text);
    return found === null ? [] : [{ word: found[0].trim(), instead, at: found.index }];
  });

/** The words of a comment, without its stars. Code in it stays as it is. */
const wordsOf = (comment) =>
  comment
    .replace(/^\/[*/]+ ?|\*\/$/g, '')
    .replace(/^[ \t]*(?:\*|\/\/) ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim();

/** Splits a name into its words, in small letters. */
const partsOf = (name) =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[\s_$-]+/);

/** The prose of a TypeScript file: each comment, each string and template, each name that is declared. */
function proseOf(file) {
  const text = read(file);
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found = [];
  const comments = new Map();
  const visit = (node) => {
    for (const range of ts.getLeadingCommentRanges(text, node.getFullStart()) ?? [])
      comments.set(range.pos, text.slice(range.pos, range.end));
    for (const range of ts.getTrailingCommentRanges(text, node.getEnd()) ?? [])
      comments.set(range.pos, text.slice(range.pos, range.end));
    if (ts.isImportDeclaration(node)) return;
    if (
      ts.isStringLiteralLike(node) ||
      ts.isTemplateHead(node) ||
      ts.isTemplateMiddleOrTemplateTail(node)
    )
      found.push({
        kind: 'string',
        prose: node.text.replace(/\s+/g, ' '),
        position: node.getStart(),
      });
    if (node.name !== undefined && ts.isIdentifier(node.name))
      found.push({ kind: 'name', prose: node.name.text, position: node.name.getStart() });
    node.getChildren(source).forEach(visit);
  };
  visit(source);
  for (const [position, comment] of comments)
    found.push({ kind: 'comment', prose: wordsOf(comment), position });
  return found.map(({ position, ...rest }) => ({
    ...rest,
    line: source.getLineAndCharacterOfPosition(position).line + 1,
  }));
}

const faultsOf = ({ kind, prose }) => {
  if (kind === 'name')
    return partsOf(prose)
      .filter((part) => names.test(part))
      .map((word) => ({ word, instead: 'a name in the terms of the field', at: 0 }));
  return [...(kind === 'comment' ? find(beginnings, prose) : []), ...find(phrases, prose)];
};

/** The paragraphs of a Markdown file without its code. */
function paragraphsOf(file) {
  const lines = read(file).split('\n');
  const found = [];
  let code = false;
  let start = 0;
  let paragraph = [];
  const close = () => {
    if (paragraph.length > 0)
      found.push({ kind: 'docs', prose: paragraph.join(' '), line: start + 1 });
    paragraph = [];
  };
  lines.forEach((line, index) => {
    if (/^\s*(?:```|~~~)/.test(line)) code = !code;
    const ends = code || /^\s*(?:```|~~~|$|#|\||[-*] |\d+\. )/.test(line);
    if (ends) close();
    if (code || /^\s*(?:```|~~~|$)/.test(line)) return;
    if (paragraph.length === 0) start = index;
    paragraph.push(line.replace(/`[^`]*`/g, '`…`').trim());
  });
  close();
  return found;
}

const faultsIn = (files, prose) =>
  files.flatMap((file) =>
    prose(file)
      .filter(({ kind }) => kind !== 'string' || !withData.has(file))
      .flatMap((piece) => faultsOf(piece).map((fault) => ({ file, ...piece, ...fault }))),
  );

/** The titles of a test file: what `it`, `test` and `describe` begin with, in any form (`it.each(…)(…)`). */
function titlesOf(file) {
  const source = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest, true);
  const found = [];
  const visit = (node) => {
    const [title] = ts.isCallExpression(node) ? node.arguments : [];
    if (title !== undefined && /^(?:it|test|describe)\b/.test(node.expression.getText(source)))
      for (const { text, line } of textsOf(title, source))
        found.push({ kind: 'title', prose: text.replace(/\s+/g, ' '), line });
    node.getChildren(source).forEach(visit);
  };
  visit(source);
  return found;
}

/** The literal parts of a string or a template. */
function textsOf(node, source) {
  const line = source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
  if (ts.isStringLiteralLike(node)) return [{ text: node.text, line }];
  if (!ts.isTemplateExpression(node)) return [];
  return [node.head, ...node.templateSpans.map(({ literal }) => literal)].map(({ text }) => ({
    text,
    line,
  }));
}

/** The words in the packages that a user installs. */
export const wordsInPackages = () =>
  faultsIn(
    filesIn('packages', /\/src\/.*\.tsx?$/).filter((file) => !isTest(file)),
    proseOf,
  );

/** The words in the titles of tests. */
export const wordsInTitles = () =>
  faultsIn(
    ['packages', 'conformance', 'examples', 'bench', 'scripts'].flatMap((folder) =>
      filesIn(folder, /\.test\.(?:tsx?|mjs)$/),
    ),
    titlesOf,
  );

/** The words in the docs: all Markdown of the project but the records of earlier decisions and changes. */
export const wordsInDocs = () =>
  faultsIn(
    filesIn('.', /\.md$/).filter((file) => !/(?:^|\/)docs\/history\/|\.api\.md$/.test(file)),
    paragraphsOf,
  );

function main() {
  const { values, positionals } = parseArgs({
    options: { docs: { type: 'boolean' }, help: { type: 'boolean' } },
    allowPositionals: true,
  });
  if (values.help) return console.log(help);
  const all = values.docs ? wordsInDocs() : [...wordsInPackages(), ...wordsInTitles()];
  const chosen = all.filter(
    ({ file }) => positionals.length === 0 || positionals.some((path) => file.startsWith(path)),
  );
  for (const { file, line, kind, word, instead, prose, at } of chosen)
    console.log(
      `${file}:${line} ${kind} "${word}" → ${instead}\n    ${prose.slice(Math.max(0, at - 60), at + 90)}`,
    );
  console.log(`${chosen.length} words`);
  if (chosen.length > 0) process.exitCode = 1;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) main();
