/**
 * The Markdown that models write, as data: CommonMark with tables, task lists and bare links, without HTML, pictures and
 * reference links. The time grows in proportion to the text, so hostile text does not stop the page.
 */
export type Node =
  | { readonly type: 'text' | 'code'; readonly text: string }
  | { readonly type: 'fence'; readonly text: string; readonly language: string }
  | { readonly type: 'break' | 'rule' }
  | { readonly type: 'link'; readonly href: string; readonly nodes: readonly Node[] }
  | { readonly type: 'heading'; readonly depth: number; readonly nodes: readonly Node[] }
  | { readonly type: 'list'; readonly start?: number; readonly items: readonly Item[] }
  | { readonly type: 'table'; readonly head: Row; readonly rows: readonly Row[] }
  | {
      readonly type: 'group' | 'paragraph' | 'quote' | 'strong' | 'emphasis' | 'deleted';
      readonly nodes: readonly Node[];
    };

interface Item {
  readonly isChecked?: boolean;
  readonly nodes: readonly Node[];
}

type Row = readonly (readonly Node[])[];

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
  return [{ type: 'table', head: head.map(parseInline), rows }, end];
};

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

// ---------------------------------------------------------------- inlines

/** Text that may turn out to be emphasised, or the text of a link. */
interface Frame {
  /** The mark that opens it: `**`, `*`, `__`, `_`, `~~` or `[`. */
  readonly mark: string;
  readonly nodes: Node[];
}

/** More open marks are text. */
const maxFrames = 60;

/** Parses the text of a paragraph, in one pass over a stack of open marks. */
export const parseInline = (text: string): readonly Node[] => {
  const frames: Frame[] = [{ mark: '', nodes: [] }];
  const open = new Map<string, number>();
  const add = (node: Node): void => void frames.at(-1)?.nodes.push(node);
  const count = (mark: string, by: number): void => void open.set(mark, (open.get(mark) ?? 0) + by);
  const push = (mark: string): void => {
    if (frames.length > maxFrames) {
      add({ type: 'text', text: mark });
      return;
    }
    frames.push({ mark, nodes: [] });
    count(mark, 1);
  };
  /** Closes the last frame of a mark. Marks that were opened in it are text. */
  const pop = (mark: string): readonly Node[] => {
    const nodes: Node[][] = [];
    for (;;) {
      const frame = frames.pop();
      if (frame === undefined) return nodes.reverse().flat();
      count(frame.mark, -1);
      nodes.push(frame.nodes);
      if (frame.mark === mark) return nodes.reverse().flat();
      nodes.push([{ type: 'text', text: frame.mark }]);
    }
  };
  const isOpen = (mark: string): boolean => (open.get(mark) ?? 0) > 0;
  const match = (pattern: RegExp, at: number): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(text) ?? undefined;
  };

  const readRun = (at: number): number => {
    const [run = ''] = match(/([*_~])\1*/uy, at) ?? [];
    const char = run.charAt(0);
    const end = at + run.length;
    const [before, after] = [text.charAt(at - 1), text.charAt(end)];
    const inWord = char === '_' && isWord(before) && isWord(after);
    const canOpen = !isSpace(after) && !inWord && !(isPunctuation(after) && isWord(before));
    const canClose = !isSpace(before) && !inWord && !(isPunctuation(before) && isWord(after));
    if (char === '~' && run.length !== 2) {
      add({ type: 'text', text: run });
      return end;
    }
    let left = run.length;
    while (canClose && left > 0) {
      // Of three, the mark that was opened last is the first to close.
      const top = frames.findLast(({ mark }) => mark.startsWith(char))?.mark.length ?? 0;
      const sizes = left > 2 ? [top] : [left, 1];
      const size = sizes.find((it) => isOpen(char.repeat(it)));
      if (size === undefined) break;
      const type = char === '~' ? 'deleted' : size === 2 ? 'strong' : 'emphasis';
      add({ type, nodes: pop(char.repeat(size)) });
      left -= size;
    }
    if (!canOpen || left > 3) {
      if (left > 0) add({ type: 'text', text: char.repeat(left) });
      return end;
    }
    for (; left > 0; left -= Math.min(2, left)) push(char.repeat(Math.min(2, left)));
    return end;
  };

  const readCode = (at: number): number => {
    const [run = ''] = match(/`+/uy, at) ?? [];
    const begin = at + run.length;
    // Few runs have no other of their length after them, so few search in vain.
    const closing = new RegExp(`(?<!\`)${run}(?!\`)`, 'gu');
    closing.lastIndex = begin;
    const close = closing.exec(text);
    if (close !== null) {
      const code = text.slice(begin, close.index).replaceAll('\n', ' ');
      add({ type: 'code', text: code.replace(/^ (.*[^ ].*) $/u, '$1') });
      return closing.lastIndex;
    }
    add({ type: 'text', text: run });
    return begin;
  };

  const readLinkEnd = (at: number): number => {
    const target = isOpen('[') ? match(linkTarget, at + 1) : undefined;
    if (target !== undefined) {
      const nodes = pop('[');
      const href = safeUrl(decoded(target[1] ?? target[2] ?? ''));
      add(href === undefined ? { type: 'group', nodes } : { type: 'link', href, nodes });
      return linkTarget.lastIndex;
    }
    if (isOpen('[')) {
      const nodes = pop('[');
      [{ type: 'text', text: '[' } as const, ...nodes].forEach(add);
    }
    add({ type: 'text', text: ']' });
    return at + 1;
  };

  const readUrl = (at: number, pattern: RegExp): number => {
    const [all, bracketed] = match(pattern, at) ?? [];
    const found =
      all === undefined || (bracketed === undefined && isWord(text.charAt(at - 1)))
        ? ''
        : (bracketed ?? bare(all));
    const href = safeUrl(found);
    if (href === undefined) {
      add({ type: 'text', text: text.charAt(at) });
      return at + 1;
    }
    add({ type: 'link', href, nodes: [{ type: 'text', text: found }] });
    return at + (bracketed === undefined ? found.length : (all ?? '').length);
  };

  const readAt = (at: number): number => {
    switch (text.charAt(at)) {
      case '\\': {
        const next = text.charAt(at + 1);
        if (next === '\n') add({ type: 'break' });
        else add({ type: 'text', text: /^[!-/:-@[-`{-~]$/u.test(next) ? next : `\\${next}` });
        return at + 2;
      }
      case '\n': {
        add(text.slice(at - 2, at) === '  ' ? { type: 'break' } : { type: 'text', text: '\n' });
        return at + 1;
      }
      case '*':
      case '_':
      case '~':
        return readRun(at);
      case '`':
        return readCode(at);
      case '[':
        push('[');
        return at + 1;
      case '!':
        // A picture becomes a link: to load it would report that it was seen.
        if (text.charAt(at + 1) !== '[') add({ type: 'text', text: '!' });
        return at + 1;
      case ']':
        return readLinkEnd(at);
      case '<':
        return readUrl(at, /<((?:https?:|mailto:)[^\s<>]{1,2000})>/uy);
      case '&': {
        const [entity = '&'] = match(/&#?\w{2,6};/uy, at) ?? [];
        add({ type: 'text', text: decoded(entity) });
        return at + entity.length;
      }
      case 'h':
        return readUrl(at, /https?:\/\/[^\s<>]{1,2000}/uy);
      default: {
        const [plain = text.charAt(at)] = match(/[^\\\n*_~`[\]!<&h]+/uy, at) ?? [];
        add({ type: 'text', text: plain });
        return at + plain.length;
      }
    }
  };

  for (let at = 0; at < text.length;) at = readAt(at);
  return merged(pop(''));
};

/** `(target)`, `(<target>)` or either with a title. Targets may have parentheses. */
const linkTarget =
  /\([ \n]*(?:<([^<>\n]{0,2000})>|((?:[^\s()<>]|\([^\s()<>]{0,500}\)){0,2000}))(?:[ \n]+(?:"[^"]{0,500}"|'[^']{0,500}'))?[ \n]*\)/uy;

const isSpace = (char: string): boolean => char.trim() === '';
const isWord = (char: string): boolean => /^[\p{L}\p{N}]$/u.test(char);
const isPunctuation = (char: string): boolean => !isSpace(char) && !isWord(char);

/** A bare URL without the punctuation of the sentence around it. */
const bare = (url: string): string => {
  let end = url.length;
  for (; end > 0; end -= 1) {
    const char = url.charAt(end - 1);
    const isClosing = char === ')' && !url.slice(0, end).includes('(');
    if (!isClosing && !'.,;:!?\'"*_~`]'.includes(char)) break;
  }
  return url.slice(0, end);
};

/** Joins neighbouring text. */
const merged = (nodes: readonly Node[]): readonly Node[] => {
  const result: Node[] = [];
  let texts: string[] = [];
  const flush = (): void => {
    if (texts.length > 0) result.push({ type: 'text', text: texts.join('') });
    texts = [];
  };
  for (const node of nodes) {
    if (node.type === 'text') {
      texts.push(node.text);
      continue;
    }
    flush();
    result.push('nodes' in node ? { ...node, nodes: merged(node.nodes) } : node);
  }
  flush();
  return result;
};

/** An absolute URL of a kind that is safe to open. */
export const safeUrl = (text: string): string | undefined => {
  if (!URL.canParse(text)) return undefined;
  const { protocol, href } = new URL(text);
  return ['http:', 'https:', 'mailto:'].includes(protocol) ? href : undefined;
};

const entities = new Map(
  Object.entries({
    ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©' },
    ...{ mdash: '—', ndash: '–', hellip: '…', rarr: '→', times: '×', middot: '·' },
  }),
);

/** Replaces the entities that models write. */
const decoded = (text: string): string =>
  text.replaceAll(/&(?:#(x?)([\da-f]{1,5})|(\w{2,6}));/giu, (all, hex, code, name) => {
    if (typeof code !== 'string') return entities.get(String(name)) ?? all;
    const point = Number.parseInt(code, hex === '' ? 10 : 16);
    return Number.isNaN(point) ? all : String.fromCodePoint(point);
  });
