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
  | {
      readonly type: 'table';
      readonly head: Row;
      readonly rows: readonly Row[];
      /** Of each column; `undefined` is on the left. */
      readonly align: readonly ('right' | 'center' | undefined)[];
    }
  | {
      readonly type: 'group' | 'paragraph' | 'quote' | 'strong' | 'emphasis' | 'deleted';
      readonly nodes: readonly Node[];
    };

export interface Item {
  readonly isChecked?: boolean;
  readonly nodes: readonly Node[];
}

export type Row = readonly (readonly Node[])[];

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
