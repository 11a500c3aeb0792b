import { parsedJson } from 'millrace/values';

interface TextListener {
  /** Called at a string that is a value; gets it decoded, in pieces. Invalid escapes and LaTeX commands are literal. */
  opens(path: readonly string[]): ((piece: string) => void) | undefined;
  closes(path: readonly string[], text: string): void;
  keyed(path: readonly string[]): void;
}

export type JsonScan = ReturnType<typeof createJsonScan>;

type Stop = 'closed' | 'line' | 'mark';

const quotes: Readonly<Record<string, string>> = {
  '"': '"',
  '“': '”',
  "'": "'",
  '‘': '’',
  '`': '`',
};
const closers: Readonly<Record<string, string>> = { '{': '}', '[': ']', '(': ')' };

/** Longer strings are not reported, and paths are only tracked to this depth. */
const maxLength = 200;
const maxPath = 6;

const longestCommand = 16;

/** Scans a JSON value, or what was meant as one, in pieces of any length, to find its end. With `isPython`, also a call. */
export const createJsonScan = (listener?: TextListener, isPython = false) => {
  const beforeQuote = isPython ? '{[(,:=' : '{[,:';
  const missing: string[] = [];
  const keys: string[] = [];
  let quote = '';
  let isKey = false;
  let awaitsKey = false;
  let word = '';
  let escape = '';
  let sink: ((piece: string) => void) | undefined;
  let piece = '';
  let last = '';
  let before = '';
  let comment: '' | 'line' | 'block' = '';
  const literals: number[] = [];
  let passed = 0;
  let position = 0;
  let escapeAt = 0;
  let command = '';
  let isEmitted = false;
  let isFormula = false;
  let isPath = false;
  let beforeThat = '';

  const path = (): readonly string[] =>
    keys.length > maxPath ? keys.slice(0, maxPath + 1) : [...keys];
  const flush = (): void => {
    // Half of a surrogate pair waits for the other.
    const code = piece.charCodeAt(piece.length - 1);
    const end = code >= 0xd800 && code < 0xdc00 ? piece.length - 1 : piece.length;
    if (end > 0) sink?.(piece.slice(0, end));
    piece = piece.slice(end);
  };
  const stopSink = (): void => {
    flush();
    sink = undefined;
  };
  const add = (characters: string): void => {
    if (sink !== undefined) piece += characters;
    else if (word.length < maxLength) word += characters;
  };
  const openText = (character: string): void => {
    quote = quotes[character] ?? '';
    isKey = awaitsKey;
    word = '';
    piece = '';
    // JSON with backticks is not read.
    if (!isKey && character !== '`' && keys.length <= maxPath) sink = listener?.opens(path());
    isEmitted = sink !== undefined;
    isFormula = false;
    isPath = false;
  };
  const closeText = (): void => {
    if (command !== '') endCommand();
    if (sink !== undefined) {
      sink(piece);
      piece = '';
      sink = undefined;
    } else if (!isKey && word.length < maxLength && keys.length <= maxPath) {
      listener?.closes(path(), word);
    }
    quote = '';
    escape = '';
    last = '"';
  };
  const endEscape = (): void => {
    const whole = escape;
    const decoded = decodedEscape(whole) ?? (whole === "\\'" ? "'" : undefined);
    escape = '';
    if (!isEmitted) add(decoded ?? whole);
    else if (isPath && !/^\\["\\]$/.test(whole)) addLiteral(whole);
    else if (/^\\[bfnrt]$/.test(whole)) command = whole;
    else if (decoded === undefined) addLiteral(whole);
    else add(decoded);
  };
  const endCommand = (): void => {
    const whole = command;
    command = '';
    if (isLiteralBackslash(whole, isFormula)) addLiteral(whole);
    else add(`${decodedEscape(whole.slice(0, 2)) ?? ''}${whole.slice(2)}`);
  };
  const addLiteral = (characters: string): void => {
    literals.push(escapeAt);
    isFormula = opensFormula(characters, before, isFormula);
    add(characters);
  };
  const inText = (character: string): void => {
    if (command !== '') {
      if (command.length < longestCommand && /[a-z]/i.test(character)) {
        command += character;
        return;
      }
      endCommand();
    }
    if (escape.startsWith('\\u') && !/[\da-f]/i.test(character)) endEscape();
    if (escape !== '') {
      escape += character;
      if (isWholeEscape(escape)) endEscape();
    } else if (character === '\\') {
      escape = character;
      escapeAt = position;
      isPath ||= before === ':' && /[C-PR-Z]/.test(beforeThat);
    } else if (character === quote) closeText();
    else {
      if (character < ' ') stopSink();
      if (isEmitted) {
        isFormula = opensFormula(character, before, isFormula);
        if (isPath && /[\s'<>|]/.test(character)) isPath = false;
      }
      add(character);
    }
  };
  const open = (character: string): void => {
    missing.push(closers[character] ?? '');
    keys.push('');
    awaitsKey = character === '{';
    word = '';
  };
  const close = (): void => {
    missing.pop();
    keys.pop();
    awaitsKey = false;
  };
  const outside = (character: string): Stop | undefined => {
    switch (character) {
      case '{':
      case '[':
        open(character);
        break;
      case '}':
      case ']':
        close();
        if (missing.length === 0) return 'closed';
        break;
      case '(':
        if (isPython) open(character);
        break;
      case ')':
        if (isPython) close();
        if (isPython && missing.length === 0) return 'closed';
        break;
      case ':':
        if (awaitsKey && keys.length > 0 && keys.length <= maxPath) {
          keys[keys.length - 1] = word.trim();
          listener?.keyed(path());
        }
        awaitsKey = false;
        break;
      case ',':
        awaitsKey = missing.at(-1) === '}';
        word = '';
        break;
      case '"':
      case '“':
        openText(character);
        return;
      case "'":
      case '‘':
      case '`':
        if (last === '' || beforeQuote.includes(last)) openText(character);
        return;
      case '<':
        return 'mark';
      case '\n':
        return 'line';
      default:
        if (awaitsKey && word.length < maxLength) word += character;
    }
    if (character.trim() !== '') last = character;
    return undefined;
  };
  const inComment = (character: string): void => {
    const isOver = comment === 'line' ? character === '\n' : before === '*' && character === '/';
    if (isOver) comment = '';
  };
  const beginsComment = (character: string): boolean =>
    before === '/' && (character === '/' || character === '*') && ' ,{[}]:/\n'.includes(slashAfter);
  let slashAfter = ' ';

  return {
    /** Stops after the end of the value or of a line, and before characters that no JSON has. */
    feed: (
      text: string,
      from: number,
    ): { readonly to: number; readonly stop: Stop | undefined } => {
      for (let at = from; at < text.length; at += 1) {
        const character = text.charAt(at);
        position = passed + at - from;
        if (quote !== '') inText(character);
        else if (comment !== '') inComment(character);
        else if (character === '#') comment = 'line';
        else if (beginsComment(character)) comment = character === '/' ? 'line' : 'block';
        else {
          const stop = outside(character);
          if (stop !== undefined) {
            const to = stop === 'mark' ? at : at + 1;
            if (stop !== 'mark') before = character;
            passed += to - from;
            return { to, stop };
          }
        }
        if (character === '/' && before !== '/') slashAfter = before === '' ? ' ' : before;
        beforeThat = before;
        before = character;
      }
      if (sink !== undefined) flush();
      passed += text.length - from;
      return { to: text.length, stop: undefined };
    },
    get missing() {
      return missing;
    },
    get open() {
      return quote === '' ? undefined : { path: path(), isKey };
    },
    literals,
  };
};

/** Feeds text from a position up to the end of the value, or to a mark. Returns nothing if more text has to follow. */
export const feedValue = (
  scan: JsonScan,
  text: string,
  from = 0,
): { readonly end: number; readonly isClosed: boolean } | undefined => {
  let at = from;
  while (at < text.length) {
    const { to, stop } = scan.feed(text, at);
    at = to;
    if (stop !== undefined && stop !== 'line') return { end: to, isClosed: stop === 'closed' };
  }
  return undefined;
};

/** LaTeX commands that models write with one backslash, which JSON reads as an escape. */
const commands =
  'nabla neq newline nmid nolimits nonumber notin nparallel nsubseteq rangle rceil rfloor rho right rightarrow rvert tanh tau tbinom text textbf textit textrm textsf texttt tfrac theta therefore tilde times triangle'.split(
    ' ',
  );

/** Commands only within formulas: elsewhere, the letters may start a line after the escape. */
const commandsInFormulas = 'ne neg not nu rm tan to top'.split(' ');

/** Whether the backslash of an escape is literal: form feeds and backspaces before a word do not occur. */
const isLiteralBackslash = (escape: string, isFormula: boolean): boolean => {
  const name = escape.slice(1);
  if (name.length === 1) return false;
  if (/^[bf]/.test(name)) return true;
  return commands.includes(name) || (isFormula && commandsInFormulas.includes(name));
};

/** Whether a formula is open after a character or an escape, in Markdown or LaTeX; `$$` is one mark. */
const opensFormula = (mark: string, before: string, isOpen: boolean): boolean => {
  switch (mark) {
    case '$':
      return before === '$' ? isOpen : !isOpen;
    case '\\(':
    case '\\[':
      return true;
    case '\\)':
    case '\\]':
      return false;
    default:
      return isOpen;
  }
};

const isWholeEscape = (escape: string): boolean =>
  escape.startsWith('\\u') ? escape.length === 6 : escape.length === 2;

const decodedEscape = (escape: string): string | undefined => {
  const decoded = parsedJson(`"${escape}"`);
  return typeof decoded === 'string' ? decoded : undefined;
};

export const withDoubled = (text: string, positions: readonly number[]): string => {
  let from = 0;
  const parts = positions.map((position) => {
    const part = text.slice(from, position);
    from = position;
    return part;
  });
  return [...parts, text.slice(from)].join('\\');
};
