export interface UnwrapperInit {
  /** Takes text that is not wrapped, or no longer. */
  readonly push: (text: string) => void;
  /** Whether a call may start with this text; `more` if that depends on what follows. */
  readonly mayBeCall: (text: string) => boolean | 'more';
  /** Whether a whole text is a valid call, and nothing else. */
  readonly isCall: (text: string) => boolean;
  /** Called if the whole reply is a valid call in a block quote, which is a quotation. */
  readonly onQuoted: (text: string) => void;
}

/**
 * Takes the marks off a reply that is one call and nothing else: inline code, quotation marks, bold, a list item, a
 * heading, and a period at the end. Text passes as soon as it cannot be that. Thoughts in tags may precede it.
 */
export const createUnwrapper = ({ push, mayBeCall, isCall, onQuoted }: UnwrapperInit) => {
  let held = '';
  let state: 'start' | 'wrapped' | 'thought' | 'through' = 'start';

  const pass = (next: typeof state): void => {
    const text = held;
    held = '';
    state = next;
    if (text !== '') push(text);
  };
  const start = (isEnd: boolean): void => {
    const text = held.trimStart();
    if (text === '') return;
    if (thoughtStart.test(text)) {
      state = 'thought';
      thought();
      return;
    }
    const { body } = unwrapped(text);
    if (body === text) {
      if (isEnd || !mayOpenWrap(text)) pass('through');
      return;
    }
    const may = body === '' ? 'more' : mayBeCall(body);
    if (may === 'more' && !isEnd && body.length < maxLead) return;
    if (may === false || may === 'more') pass('through');
    else {
      state = 'wrapped';
      wrapped();
    }
  };
  const thought = (): void => {
    const end = thoughtEnd.exec(held);
    if (end === null) {
      const tag = held.slice(held.lastIndexOf('<'));
      const isTag = '</thinking>'.startsWith(tag.toLowerCase());
      held = held.slice(0, held.length - (isTag ? tag.length : 0));
      pass('thought');
      held = isTag ? tag : '';
      return;
    }
    const rest = held.slice(end.index + end[0].length);
    held = held.slice(0, held.length - rest.length);
    pass('start');
    held = rest;
    start(false);
  };
  const wrapped = (): void => {
    if (isOver(held.trim())) pass('through');
  };
  const step = (): void => {
    if (state === 'start') start(false);
    else if (state === 'thought') thought();
    else if (state === 'wrapped') wrapped();
    else pass('through');
  };
  return {
    push: (text: string): void => {
      held += text;
      step();
    },
    end: (): void => {
      if (state === 'start') start(true);
      if (state !== 'wrapped') {
        pass('through');
        return;
      }
      const text = held.trim();
      const isQuoted = text.startsWith('>');
      const call = candidates(text).find(isCall);
      if (call !== undefined && !isQuoted) held = call;
      pass('through');
      if (call !== undefined && isQuoted) onQuoted(call);
    },
    get held() {
      return held.length;
    },
  };
};

/** In characters, after the marks. */
const maxLead = 80;
/** Marks within marks. */
const maxDepth = 4;

const thoughtStart = /^<(?:think|thinking)>/i;
const thoughtEnd = /<\/(?:think|thinking)>/i;

const closers = new Map([
  ['"', '"'],
  ["'", "'"],
  ['“', '”'],
  ['‘', '’'],
  ['«', '»'],
  ['„', '“'],
]);

/** A mark at the start, and what closes it: nothing for one of a line. */
const openingOf = (
  text: string,
): { readonly length: number; readonly close: string } | undefined => {
  const [line] = /^(?:#{1,6}|[-*+•]|\d{1,2}[.)]|>)[ \t]+/.exec(text) ?? [];
  if (line !== undefined) return { length: line.length, close: '' };
  const [mark] = /^(?:`{1,2}(?!`)|\*{1,3}(?![*\s])|_{1,3}(?![_\s])|["'“‘«„])/.exec(text) ?? [];
  return mark === undefined ? undefined : { length: mark.length, close: closers.get(mark) ?? mark };
};

/** Whether more text may complete a mark. */
const mayOpenWrap = (text: string): boolean =>
  /^(?:#{1,6}|[-+•>]|\*{1,3}|_{1,3}|`{1,2}|\d{1,2}[.)]?)[ \t]*$/.test(text) ||
  '<thinking>'.startsWith(text.toLowerCase());

/** The text without the marks at its start, and what closes them, the outermost first. */
const unwrapped = (text: string): { readonly body: string; readonly closes: readonly string[] } => {
  let body = text;
  const closes: string[] = [];
  for (let depth = 0; depth < maxDepth; depth += 1) {
    const opening = openingOf(body);
    if (opening === undefined) break;
    // A quotation of a quotation stays one.
    if (depth > 0 && body.startsWith('>')) return { body: text, closes: [] };
    body = body.slice(opening.length);
    if (opening.close !== '') closes.push(opening.close);
  }
  return { body, closes };
};

/** The period of a sentence, and space. */
const tail = /[.;,!\s]*$/;

/** The text without all marks, with and without a period within them. */
const candidates = (text: string): readonly string[] => {
  const lines = text.startsWith('>') ? text.replaceAll(/\n[ \t]*>[ \t]?/g, '\n') : text;
  const { body, closes } = unwrapped(lines);
  let inner = body;
  for (const close of closes) {
    const end = inner.replace(tail, '');
    if (end.endsWith(close)) inner = end.slice(0, -close.length);
    // Models forget the mark at the end of inline code.
    else if (!close.startsWith('`') || inner.includes('`')) return [];
  }
  const bare = inner.replace(tail, '');
  return [inner, bare, ...(/^\{\s*\\"/.test(bare) ? [bare.replaceAll('\\"', '"')] : [])];
};

/** Whether there is text after the marks, or a line that is no part of JSON or of tags. */
const isOver = (text: string): boolean => {
  if (text.startsWith('>')) return /\n(?![ \t]*>)/.test(text);
  const { body, closes } = unwrapped(text);
  const [outer] = closes;
  if (/\n[ \t]*(?:\n|[^\s"'{}[\]<>`*_.;,])/.test(text)) return true;
  if (outer === undefined) return text.includes('\n');
  const from = text.indexOf(body);
  // In a call, other marks than that of inline code may be part of a string.
  const until = outer.startsWith('`') ? text.length : from + Math.max(body.search(/[[{<(]|$/), 0);
  const end = text.indexOf(outer, from);
  return end >= 0 && end <= until && /[^\s.;,!*_"'”’»`]/.test(text.slice(end + outer.length));
};
