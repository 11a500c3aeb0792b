// Markdown as trees of tokens that the page draws. There is no HTML: tags are text.
import MarkdownIt, { type Env, type Token } from 'markdown-it';
import remend from 'remend';
import { addRules, footnotesOf } from './markdown-rules.js';

/** A token with those inside it. */
export interface Node {
  readonly token: Token;
  readonly nodes: readonly Node[];
}

/** A block with the lines that it comes from, to see whether it has changed. */
export interface Block extends Node {
  readonly source: string;
}

export interface Markdown {
  readonly blocks: readonly Block[];
  /** The targets of links and the labels of footnotes, which any block may refer to; empty without any. */
  readonly definitions: string;
  readonly env: Env;
}

const parser = new MarkdownIt({ html: false, linkify: true });
// The page draws links that are safe, and the text of others.
parser.validateLink = () => true;
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false }).add('ftp:', null).add('//', null);
addRules(parser);

/**
 * Parses text. Given an earlier part of the same text, it keeps its blocks up to a blank line before the last two: what follows may
 * make the last line part of either, or close a formula.
 */
export const parseMarkdown = (text: string, before?: Markdown): Markdown => {
  if (before?.definitions !== '') return parse(text);
  const ended = before.blocks.slice(0, -2).findLastIndex(({ source }) => blankEnd.test(source));
  const kept = before.blocks.slice(0, ended + 1);
  const start = kept.map(({ source }) => source).join('');
  if (!text.startsWith(start)) return parse(text);
  const rest = parse(text.slice(start.length));
  // They may give a meaning to the text of blocks before them.
  if (rest.definitions !== '') return parse(text);
  return { ...rest, blocks: [...kept, ...rest.blocks] };
};

const blankEnd = /\n[ \t]*\n$/u;

const parse = (text: string, env: Env = {}): Markdown => {
  const lines = text.split(/(?<=\n)/u);
  const roots = treeOf(parser.parse(text, env));
  const firstLine = (at: number): number | undefined => (at === 0 ? 0 : roots[at]?.token.map?.[0]);
  const blocks = roots.map((node, at) => ({
    ...node,
    source: lines.slice(firstLine(at), firstLine(at + 1)).join(''),
  }));
  const labels = [...footnotesOf(env)];
  const targets = Object.entries(env.references ?? {});
  const definitions = labels.length + targets.length === 0 ? '' : JSON.stringify([labels, targets]);
  return { blocks, definitions, env };
};

/** The tokens inside deeper ones are drawn without these: elements cannot be nested at will. */
const maxDepth = 100;

const treeOf = (tokens: readonly Token[]): readonly Node[] => {
  const roots: Node[] = [];
  const open = [roots];
  for (const token of tokens) {
    if (token.nesting < 0) {
      open.pop();
      continue;
    }
    const top = open.at(-1) ?? roots;
    const nodes = [...treeOf(token.children ?? [])];
    if (open.length < maxDepth || token.nesting === 0) top.push({ token, nodes });
    if (token.nesting > 0) open.push(open.length < maxDepth ? nodes : top);
  }
  return roots;
};

/** The same while the text still arrives: what is open in its last block (emphasis, a link, a table) is drawn as if it were closed. */
export const withOpenEnd = (markdown: Markdown): Markdown => {
  const last = markdown.blocks.at(-1);
  if (last === undefined) return markdown;
  const source = closed(last);
  if (source === last.source) return markdown;
  const { blocks } = parse(source, markdown.env);
  return { ...markdown, blocks: [...markdown.blocks.slice(0, -1), ...blocks] };
};

const closed = ({ source, token }: Block): string => {
  if (token.type === 'fence') return source.replace(/\n[ >]*(?:`{1,2}|~{1,2})$/u, '\n');
  if (token.type === 'code_block' || token.type === 'math_block') return source;
  const text = source.replace(unclearEnd, '');
  const table = token.type === 'paragraph_open' ? withTableRule(text) : text;
  return remend(withFormulaEnd(table), {
    ...{ linkMode: 'text-only', comparisonOperators: false, htmlTags: false, singleTilde: false },
  });
};

/** A line of marks alone, such as `-`, may become an item, a line or a heading; `[^1` becomes the mark of a footnote. */
const unclearEnd = /\n[ >]*(?:[-*+=#>_`~]{1,3}|\d{1,9}[.)]?) *$|\[\^[^\]\s]*$/u;

/** The row of dashes makes a table of the row before it. */
const withTableRule = (source: string): string => {
  const [, before = '', head] =
    /^([^]*\n)?( {0,3}\|(?=[^\n]*[^\s|:-])[^\n]*)(?:\n[ |:-]*)?$/u.exec(source) ?? [];
  if (head === undefined) return source;
  const cells = head.replaceAll(/^ *\||\| *$/gu, '').split(/(?<!\\)\|/u);
  return `${before}${head}\n|${'-|'.repeat(cells.length)}`;
};

const withFormulaEnd = (source: string): string => {
  const [all, bracket] = /\\([([])(?:[^\\]|\\[^()[\]])*$/u.exec(source) ?? [];
  if (all === undefined) return source;
  return `${source}${all.includes('\n') ? '\n' : ''}${bracket === '[' ? '\\]' : '\\)'}`;
};
