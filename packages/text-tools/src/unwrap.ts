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
  let state: 'blank' | 'start' | 'wrapped' | 'thought' | 'through' = 'blank';
  let hasEnded = createEndCheck('');

  const pass = (next: typeof state): void => {
    const text = held;
    held = '';
    state = next;
    if (text !== '') push(text);
  };
  const start = (isEnd: boolean): void => {
    const text = held.trimStart();
    if (text === '') {
      state = 'blank';
      return;
    }
    if (thoughtStart.test(text)) {
      state = 'thought';
      thought();
      return;
    }
    const isWrapped = opensCall(text, isEnd, mayBeCall);
    if (isWrapped === 'more') return;
    if (isWrapped) {
      state = 'wrapped';
      hasEnded = createEndCheck(text);
    }
    if (!isWrapped || hasEnded(text)) pass('through');
  };
  const thought = (): void => {
    const end = thoughtEnd.exec(held);
    const length = end === null ? beforeTag(held) : end.index + end[0].length;
    const rest = held.slice(length);
    held = held.slice(0, length);
    pass(end === null ? 'thought' : 'start');
    held = rest;
    if (end !== null) start(false);
  };
  return {
    push: (text: string): void => {
      held += text;
      if (state === 'blank' && text.trim() !== '') state = 'start';
      if (state === 'start') start(false);
      else if (state === 'thought') thought();
      else if (state === 'through' || (state === 'wrapped' && hasEnded(text))) pass('through');
    },
    end: (): void => {
      if (state === 'start') start(true);
      const call = state === 'wrapped' ? candidates(held.trim()).find(isCall) : undefined;
      const isQuoted = held.trimStart().startsWith('>');
      if (call !== undefined && !isQuoted) held = call;
      pass('through');
      if (call !== undefined && isQuoted) onQuoted(call);
    },
    get held() {
      return held.length;
    },
  };
};

/** In characters, with the marks. */
const maxLead = 100;
/** Marks within marks. */
const maxDepth = 4;

/** Whether text starts with marks around what may be a call; `more` if that depends on what follows. */
const opensCall = (
  text: string,
  isEnd: boolean,
  mayBeCall: UnwrapperInit['mayBeCall'],
): boolean | 'more' => {
  const { body } = unwrapped(text);
  if (body === text) return isEnd || !mayOpenWrap(text) ? false : 'more';
  const may = body === '' || mayOpenWrap(body) ? 'more' : mayBeCall(body);
  return may === 'more' && (isEnd || text.length >= maxLead) ? false : may;
};

/** The length of text without what may be the start of a closing tag of a thought. */
const beforeTag = (text: string): number => {
  const at = text.lastIndexOf('<');
  return at >= 0 && '</thinking>'.startsWith(text.slice(at).toLowerCase()) ? at : text.length;
};

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

/** The text without the period of a sentence, and without space, at its end. */
const withoutTail = (text: string): string => {
  let end = text.length;
  while (/[.;,!\s]/.test(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
};

/** The text without all marks, with and without a period within them. */
const candidates = (text: string): readonly string[] => {
  const lines = text.startsWith('>') ? text.replaceAll(/\n[ \t]*>[ \t]?/g, '\n') : text;
  const { body, closes } = unwrapped(lines);
  let inner = body;
  for (const close of closes) {
    const end = withoutTail(inner);
    if (end.endsWith(close)) inner = end.slice(0, -close.length);
    // Models forget the mark at the end of inline code.
    else if (!close.startsWith('`') || inner.includes('`')) return [];
  }
  const bare = withoutTail(inner);
  return [inner, bare, ...(/^\{\s*\\"/.test(bare) ? [bare.replaceAll('\\"', '"')] : [])];
};

/**
 * Whether there is text after the marks, or a line that is no part of JSON or of tags. Takes the text as it comes, and
 * reads it once. Space counts only if something follows.
 */
const createEndCheck = (begun: string): ((piece: string) => boolean) => {
  if (begun.startsWith('>')) return createLineCheck('\n', />/);
  const { body, closes } = unwrapped(begun);
  const [close] = closes;
  if (close === undefined) return createLineCheck('', /\S/);
  const isLineOver = createLineCheck('\n', /["'{}[\]<>`*_.;,]/);
  const isMarkOver = createMarkCheck(close);
  let marks = begun.length - body.length;
  return (piece) => {
    const text = piece.slice(marks);
    marks = 0;
    return isLineOver(piece) || isMarkOver(text);
  };
};

/** Whether text follows a line and `between`, or a line starts otherwise than with `starts`. */
const createLineCheck = (between: '' | '\n', starts: RegExp): ((piece: string) => boolean) => {
  let line: 'within' | 'start' | 'over' = 'within';
  return (piece) => {
    let at = line === 'within' ? piece.indexOf('\n') : 0;
    while (at >= 0 && at < piece.length) {
      const character = piece.charAt(at);
      if (character === '\n') line = line === 'within' && between !== '' ? 'start' : 'over';
      else if (/\S/.test(character)) {
        if (line === 'over' || !starts.test(character)) return true;
        line = 'within';
      }
      at = line === 'within' ? piece.indexOf('\n', at) : at + 1;
    }
    return false;
  };
};

/** Whether text follows the mark that closes the outermost one. */
const createMarkCheck = (close: string): ((piece: string) => boolean) => {
  const followed = /[^\s.;,!*_"'”’»`]/;
  // In a call, other marks than that of inline code may be part of a string.
  const within = close.startsWith('`') ? /$^/ : /[[{<(]/;
  let state: 'open' | 'closed' | 'call' = 'open';
  let last = '';
  return (piece) => {
    if (state === 'call') return false;
    if (state === 'closed') return followed.test(piece);
    const text = last + piece;
    const end = text.indexOf(close);
    const call = text.search(within);
    last = text.slice(text.length - close.length + 1);
    if (end >= 0 && (call < 0 || end < call)) state = 'closed';
    else if (call >= 0) state = 'call';
    return state === 'closed' && followed.test(text.slice(end + close.length));
  };
};
