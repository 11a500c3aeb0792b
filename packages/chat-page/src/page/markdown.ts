import { type Item, type Node, parseInline } from './markdown-inline.js';

/** A block with the lines that it comes from, to see whether it has changed. */
export interface Block {
  readonly source: string;
  readonly node: Node;
}

/** Parses text. Given the blocks of an earlier part of the same text, it keeps all but the last of them. */
export const parseMarkdown = (text: string, before: readonly Block[] = []): readonly Block[] => {
  const kept = before.slice(0, -1);
  const start = kept.map(({ source }) => source).join('');
  return text.startsWith(start) ? [...kept, ...blocksOf(text.slice(start.length))] : blocksOf(text);
};

const blocksOf = (text: string): readonly Block[] => {
  const pieces = text.split(/(?<=\n)/u);
  const found = readBlocks(
    pieces.map((line) => line.replace(/\r?\n$/u, '').replaceAll('\t', '    ')),
    0,
  );
  return found.map(({ node, from }, at) => {
    const until = found[at + 1]?.from;
    return { node, source: pieces.slice(at === 0 ? 0 : from, until).join('') };
  });
};

// ---------------------------------------------------------------- blocks

type Lines = readonly string[];

interface Found {
  readonly node: Node;
  /** The first line. */
  readonly from: number;
}

/** A block, and the line after it. */
type Read = readonly [node: Node, end: number];

/** Deeper blocks are plain paragraphs. */
const maxDepth = 12;

const readBlocks = (lines: Lines, depth: number): readonly Found[] => {
  const found: Found[] = [];
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const [node, end] = readBlock(lines, at, depth);
    found.push({ node, from: at });
    at = end;
  }
  return found;
};

const nodesIn = (lines: Lines, depth: number): readonly Node[] =>
  readBlocks(lines, depth + 1).map(({ node }) => node);

const isBlank = (line: string | undefined): boolean => line === undefined || line.trim() === '';
/** The first line from this one on that passes, or the end. */
const indexFrom = (lines: Lines, from: number, passes: (line: string) => boolean): number => {
  for (let at = from; at < lines.length; at += 1) if (passes(lines[at] ?? '')) return at;
  return lines.length;
};
const indentOf = (line: string): number => line.length - line.trimStart().length;

const readBlock = (lines: Lines, at: number, depth: number): Read =>
  readFence(lines, at) ??
  readIndented(lines, at) ??
  readLine(lines[at] ?? '', at) ??
  (depth < maxDepth ? (readQuote(lines, at, depth) ?? readList(lines, at, depth)) : undefined) ??
  readTable(lines, at) ??
  readParagraph(lines, at);

const readFence = (lines: Lines, at: number): Read | undefined => {
  const [, indent = '', fence, language = ''] =
    /^( {0,3})(`{3,}|~{3,})([^`]*)$/u.exec(lines[at] ?? '') ?? [];
  if (fence === undefined) return undefined;
  const closing = new RegExp(`^ {0,3}${fence.charAt(0)}{${fence.length},} *$`, 'u');
  const close = indexFrom(lines, at + 1, (line) => closing.test(line));
  const inside = lines.slice(at + 1, close);
  const text = inside.map((line) => line.slice(Math.min(indent.length, indentOf(line)))).join('\n');
  const node = { type: 'fence', text, language: language.trim().split(' ', 1)[0] ?? '' } as const;
  return [node, Math.min(close + 1, lines.length)];
};

const readIndented = (lines: Lines, at: number): Read | undefined => {
  const end = indexFrom(lines, at, (line) => !isBlank(line) && indentOf(line) < 4);
  if (end === at) return undefined;
  const text = lines
    .slice(at, end)
    .map((line) => line.slice(4))
    .join('\n')
    .trimEnd();
  return [{ type: 'fence', text, language: '' }, end];
};

const isRule = (line: string): boolean =>
  /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/u.test(line);

/** A heading or a rule. */
const readLine = (line: string, at: number): Read | undefined => {
  if (isRule(line)) return [{ type: 'rule' }, at + 1];
  const [, marks, title = ''] = /^ {0,3}(#{1,6})(?: (.*))?$/u.exec(line) ?? [];
  if (marks === undefined) return undefined;
  const nodes = parseInline(title.trim().replace(/(?:^| )#+$/u, ''));
  return [{ type: 'heading', depth: marks.length, nodes }, at + 1];
};

const quoteMark = /^ {0,3}> ?/u;

const readQuote = (lines: Lines, at: number, depth: number): Read | undefined => {
  const end = indexFrom(lines, at, (line) => !quoteMark.test(line));
  if (end === at) return undefined;
  const inside = lines.slice(at, end).map((line) => line.replace(quoteMark, ''));
  return [{ type: 'quote', nodes: nodesIn(inside, depth) }, end];
};

const readTable = (lines: Lines, at: number): Read | undefined => {
  const [first = '', rule = ''] = lines.slice(at, at + 2);
  if (!first.includes('|') || !/^[ |:-]*-[ |:-]*$/u.test(rule)) return undefined;
  const head = cellsOf(first);
  if (cellsOf(rule).length !== head.length) return undefined;
  const end = indexFrom(lines, at + 2, (line) => !line.includes('|'));
  const rows = lines.slice(at + 2, end).map((line) => {
    const cells = cellsOf(line);
    return head.map((_, column) => parseInline(cells[column] ?? ''));
  });
  return [
    { type: 'table', head: head.map(parseInline), rows, align: cellsOf(rule).map(alignOf) },
    end,
  ];
};

const alignOf = (cell: string) =>
  !cell.endsWith(':') ? undefined : cell.startsWith(':') ? 'center' : 'right';

const cellsOf = (line: string): readonly string[] =>
  line
    .trim()
    .replace(/^\|/u, '')
    .replace(/(?<!\\)\|$/u, '')
    .split(/(?<!\\)\|/u)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));

const readParagraph = (lines: Lines, at: number): Read => {
  let end = at + 1;
  for (; end < lines.length && !isBlank(lines[end]); end += 1) {
    const line = lines[end] ?? '';
    const [, underline] = /^ {0,3}(=+|-+) *$/u.exec(line) ?? [];
    if (underline !== undefined) {
      const nodes = parseInline(joined(lines.slice(at, end)));
      return [{ type: 'heading', depth: underline.startsWith('=') ? 1 : 2, nodes }, end + 1];
    }
    if (interrupts(line) || readTable(lines, end) !== undefined) break;
  }
  return [{ type: 'paragraph', nodes: parseInline(joined(lines.slice(at, end))) }, end];
};

/** Two spaces at the end of a line break it: those before a line are no part of it. */
const joined = (lines: Lines): string =>
  lines
    .map((line) => line.trimStart())
    .join('\n')
    .trimEnd();

/** Whether a line begins another block within a paragraph. */
const interrupts = (line: string): boolean =>
  /^ {0,3}(?:`{3,}[^`]*$|~{3,}|#{1,6}(?: |$)|>|[-*+] +\S|1[.)] +\S)/u.test(line) || isRule(line);

// ---------------------------------------------------------------- lists

const listMark = /^( *)([-*+]|\d{1,9}[.)])( +|$)/u;

/** The kind of a list by its marker: the bullet, or what follows the number. */
const kindOf = (mark: string): string => mark.slice(-1);

const readList = (lines: Lines, at: number, depth: number): Read | undefined => {
  const [, , mark] = listMark.exec(lines[at] ?? '') ?? [];
  if (mark === undefined) return undefined;
  const items: Item[] = [];
  let end = at;
  let isLoose = false;
  const bodies: Lines[] = [];
  for (;;) {
    const [all, indent = '', found] = listMark.exec(lines[end] ?? '') ?? [];
    if (
      all === undefined ||
      found === undefined ||
      kindOf(found) !== kindOf(mark) ||
      isRule(lines[end] ?? '')
    )
      break;
    const next = itemEnd(lines, end, indent.length, all.length);
    const body = lines
      .slice(end, next)
      .map((line, index) =>
        line.slice(index === 0 ? all.length : Math.min(all.length, indentOf(line))),
      );
    const last = body.findLastIndex((line) => !isBlank(line));
    const hasMore = !isBlank(lines[next]) && listMark.test(lines[next] ?? '');
    isLoose ||= body.slice(0, last).some(isBlank) || (hasMore && last < body.length - 1);
    bodies.push(body.slice(0, last + 1));
    end = next;
  }
  if (end === at) return undefined;
  for (const [first = '', ...rest] of bodies) {
    const [task, check] = /^\[([ xX])\] /u.exec(first) ?? [];
    const nodes = nodesIn([first.slice(task?.length ?? 0), ...rest], depth);
    items.push({
      nodes: isLoose ? nodes : nodes.map(tight),
      ...(check === undefined ? {} : { isChecked: check !== ' ' }),
    });
  }
  const start = Number.parseInt(mark, 10);
  return [{ type: 'list', items, ...(Number.isNaN(start) ? {} : { start }) }, end];
};

const tight = (node: Node): Node => (node.type === 'paragraph' ? { ...node, type: 'group' } : node);

/** The line after an item: it has the lines that are indented further, and those that continue its paragraph. */
const itemEnd = (lines: Lines, at: number, indent: number, width: number): number => {
  let fence: string | undefined;
  for (let end = at + 1; end < lines.length; end += 1) {
    const line = lines[end] ?? '';
    if (isBlank(line)) continue;
    const inner = indentOf(line);
    // Models indent lists in lists by two, too.
    const isInside = inner >= width || (inner >= indent + 2 && listMark.test(line));
    const isLazy = !isBlank(lines[end - 1]) && !listMark.test(line) && !interrupts(line);
    if (!isInside && !(isLazy && fence === undefined)) return end;
    const [mark] = /^(?:`{3,}|~{3,})/u.exec(line.trimStart()) ?? [];
    if (mark !== undefined) fence = fence === undefined ? mark : undefined;
  }
  return lines.length;
};
