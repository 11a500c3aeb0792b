// Rules for the parser of markdown-it: formulas, footnotes, tasks and lists as models write them. Each takes linear time.
import type { Env, MarkdownIt, StateBlock, StateCore, StateInline } from 'markdown-it';

/** Adds formulas, footnotes, tasks, and bullets that are not indented enough. */
export const addRules = (parser: MarkdownIt): void => {
  const interrupting = { alt: ['paragraph', 'reference', 'blockquote', 'list'] };
  parser.block.ruler.before('table', 'too deep', readDeepBlock);
  parser.block.ruler.before('fence', 'formula', readFormulaBlock, interrupting);
  parser.block.ruler.before('list', 'bullets', indentBullets);
  parser.block.ruler.before('reference', 'footnote', readFootnote, {
    alt: ['paragraph', 'reference'],
  });
  parser.inline.ruler.before('escape', 'formula', readFormula);
  parser.inline.ruler.before('link', 'footnote', readFootnoteMark);
  parser.core.ruler.after('inline', 'tasks', markTasks);
};

/** Blocks inside this many others are paragraphs. Without this, what follows them would be lost. */
const maxLevel = 60;

const readDeepBlock = (state: StateBlock, start: number, end: number, silent: boolean): boolean => {
  const readParagraph = state.md.block.ruler.getRules('').at(-1);
  return state.level >= maxLevel && readParagraph?.(state, start, end, silent) === true;
};

const lineAt = (state: StateBlock, line: number): string =>
  state.src.slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line]);

const indentAt = (state: StateBlock, line: number): number => state.sCount[line] ?? 0;

// ---------------------------------------------------------------- formulas

/** `\[2pt]` after a line break, and `\left(`, do not end a formula. */
const inBrackets = String.raw`((?:[^\\]|\\[^()[\]])+)`;

/** Each begins at its first character, and ends at the next mark of its kind: a failure does not look far. */
const formulas: readonly (readonly [pattern: RegExp, type: string])[] = [
  [/\$\$((?:[^$\\]|\\[^])+)\$\$/uy, 'math_block'],
  // As in Pandoc: `$5 and $6` are prices.
  [/(?<![\p{L}\p{N}$\\])\$(?![\s$])((?:[^$\\\n]|\\[^\n])+)(?<!\s)\$(?![\p{N}$])/uy, 'math_inline'],
  [new RegExp(String.raw`\\\(${inBrackets}\\\)`, 'uy'), 'math_inline'],
  // `\[1\]` is a reference.
  [
    new RegExp(String.raw`\\\[(?=\s|[^\\^_=\]\n]*(?:[\^_=]|\\[^\]]))${inBrackets}\\\]`, 'uy'),
    'math_block',
  ],
];

const readFormula = (state: StateInline, silent: boolean): boolean => {
  const { src, pos } = state;
  if (src[pos] !== '$' && src[pos] !== '\\') return false;
  for (const [pattern, type] of formulas) {
    pattern.lastIndex = pos;
    const [all, content] = pattern.exec(src) ?? [];
    if (all === undefined || content === undefined) continue;
    if (!silent) state.push(type, 'math', 0).content = content.trim();
    state.pos += all.length;
    return true;
  }
  return false;
};

/** A formula that has its lines for itself, without a blank one or another formula. Its marks are those of TeX or `$$`. */
const readFormulaBlock = (
  state: StateBlock,
  start: number,
  end: number,
  silent: boolean,
): boolean => {
  const mark = /^(?:\$\$|\\\[)/u.exec(lineAt(state, start))?.[0];
  if (mark === undefined || indentAt(state, start) - state.blkIndent > 3) return false;
  const closing = mark === '$$' ? '$$' : String.raw`\]`;
  const lines: string[] = [];
  for (let line = start; line < end; line += 1) {
    const text = lineAt(state, line).slice(line === start ? 2 : 0);
    if (state.isEmpty(line) || indentAt(state, line) < state.blkIndent) return false;
    if (text.startsWith(mark) && mark !== closing) return false;
    const at = text.indexOf(closing);
    lines.push(at < 0 ? text : text.slice(0, at));
    if (at < 0) continue;
    if (text.slice(at + 2).trim() !== '') return false;
    if (silent) return true;
    state.line = line + 1;
    const token = state.push('math_block', 'math', 0);
    token.content = lines.join('\n').trim();
    token.map = [start, state.line];
    return true;
  }
  return false;
};

// ---------------------------------------------------------------- footnotes

const footnotes = new WeakMap<Env, Set<string>>();

/** The labels of footnotes. */
export const footnotesOf = (env: Env): Set<string> => {
  const labels = footnotes.get(env) ?? new Set<string>();
  footnotes.set(env, labels);
  return labels;
};

/** A footnote is a paragraph that begins with `[^label]:`. */
const readFootnote = (state: StateBlock, start: number, end: number, silent: boolean): boolean => {
  const [mark = '', label] = footnotePattern.exec(lineAt(state, start)) ?? [];
  const isNested = state.level > 0 || state.blkIndent > 0 || indentAt(state, start) > 3;
  if (label === undefined || isNested) return false;
  if (silent) return true;
  const lines = [lineAt(state, start).slice(mark.length)];
  let line = start + 1;
  for (; line < end && !state.isEmpty(line); line += 1) {
    const text = lineAt(state, line);
    if (footnotePattern.test(text)) break;
    lines.push(text);
  }
  state.line = line;
  footnotesOf(state.env).add(label);
  const opening = state.push('footnote_open', 'footnote', 1);
  opening.info = label;
  opening.map = [start, line];
  const inline = state.push('inline', '', 0);
  inline.content = lines.join('\n').trim();
  inline.children = [];
  state.push('footnote_close', 'footnote', -1);
  return true;
};

const footnotePattern = /^\[\^([^\]\s]{1,100})\]:[ \t]*/u;
const footnoteMark = /\[\^([^\]\s]{1,100})\]/uy;

const readFootnoteMark = (state: StateInline, silent: boolean): boolean => {
  footnoteMark.lastIndex = state.pos;
  const [all = '', label = ''] = footnoteMark.exec(state.src) ?? [];
  if (!footnotesOf(state.env).has(label)) return false;
  if (!silent) state.push('footnote_mark', 'sup', 0).info = label;
  state.pos += all.length;
  return true;
};

// ---------------------------------------------------------------- lists

/** Marks items that begin with `[ ]` or `[x]`. */
const markTasks = ({ tokens }: StateCore): void => {
  tokens.forEach((token, at) => {
    const [box, check] = /^\[([ xX])\] /u.exec(token.content) ?? [];
    const [item, text] = [tokens[at - 2], token.children?.[0]];
    if (box === undefined || token.type !== 'inline' || item?.type !== 'list_item_open') return;
    item.meta = { isChecked: check !== ' ' };
    if (text !== undefined) text.content = text.content.slice(box.length);
  });
};

const numberMark = /^\d{1,9}([.)])[ \t]+/u;

/** Models indent bullets below a number by two spaces; Markdown wants the width of the number, and would end its list. */
const indentBullets = (state: StateBlock, start: number, end: number): boolean => {
  const kind = numberMark.exec(lineAt(state, start))?.[1];
  if (kind === undefined || indentAt(state, start) - state.blkIndent > 3) return false;
  let [indent, width, shift] = [0, 0, 0];
  for (let line = start; line < end; line += 1) {
    if (state.isEmpty(line)) continue;
    const [text, at] = [lineAt(state, line), indentAt(state, line)];
    const [mark, found] = numberMark.exec(text) ?? [];
    if (at < state.blkIndent) break;
    if (mark !== undefined && (line === start || at < indent + 2)) {
      if (found !== kind) break;
      [indent, width, shift] = [at, mark.length, 0];
    } else if (at < indent + 2) {
      break;
    } else {
      if (shift === 0 && /^[-*+] /u.test(text)) shift = Math.max(0, indent + width - at);
      state.sCount[line] = at + shift;
    }
  }
  return false;
};
