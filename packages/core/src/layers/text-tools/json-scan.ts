import { decodedEscape, isWholeEscape } from '../../values/read-json.js';

interface TextListener {
  /** A value begins that is a text in double quotes. What it returns gets the text, decoded, in pieces. Such a text is for people: a backslash that begins no escape, or a command of LaTeX, is itself. */
  opens(path: readonly string[]): ((piece: string) => void) | undefined;
  closes(path: readonly string[], text: string): void;
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
const closers: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/** Longer texts are not told of, and paths are followed this deep. */
const maxLength = 200;
const maxPath = 3;

const longestCommand = 16;

/** Looks for the end of a JSON value, or of what was meant for one, in pieces of any length. */
export const createJsonScan = (listener?: TextListener) => {
  const missing: string[] = [];
  const keys: string[] = [];
  let depth = 0;
  let colons = 0;
  let isMismatched = false;
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
  let place = 0;
  let escapeAt = 0;
  let command = '';
  let isSpoken = false;
  let isFormula = false;
  let isPath = false;
  let beforeThat = '';

  const path = (): readonly string[] =>
    keys.length > maxPath ? keys.slice(0, maxPath + 1) : [...keys];
  const flush = (): void => {
    // Half a pair waits for its other half.
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
    if (!isKey && character === '"' && keys.length <= maxPath) sink = listener?.opens(path());
    isSpoken = sink !== undefined;
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
    if (!isSpoken) add(decoded ?? whole);
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
      escapeAt = place;
      isPath ||= before === ':' && /[C-PR-Z]/.test(beforeThat);
    } else if (character === quote) closeText();
    else {
      if (character < ' ') stopSink();
      if (isSpoken) {
        isFormula = opensFormula(character, before, isFormula);
        if (isPath && /[\s'<>|]/.test(character)) isPath = false;
      }
      add(character);
    }
  };
  const open = (character: string): void => {
    missing.push(closers[character] ?? '');
    keys.push('');
    depth = Math.max(depth, missing.length);
    awaitsKey = character === '{';
    word = '';
  };
  const close = (character: string): void => {
    if (missing.pop() !== character) isMismatched = true;
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
        close(character);
        break;
      case ':':
        colons += 1;
        if (awaitsKey && keys.length > 0 && keys.length <= maxPath)
          keys[keys.length - 1] = word.trim();
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
        if (last === '' || '{[,:'.includes(last)) openText(character);
        return;
      case '<':
        return 'mark';
      case '\n':
        return 'line';
      default:
        if (awaitsKey && word.length < maxLength) word += character;
    }
    if (character.trim() !== '') last = character;
    return missing.length === 0 ? 'closed' : undefined;
  };
  const inComment = (character: string): void => {
    const isOver = comment === 'line' ? character === '\n' : before === '*' && character === '/';
    if (isOver) comment = '';
  };
  const beginsComment = (character: string): boolean =>
    before === '/' && (character === '/' || character === '*') && ' ,{[}]:/\n'.includes(slashAfter);
  let slashAfter = ' ';

  return {
    /** Stops behind the end of the value or of a line, and before what no JSON has. */
    feed: (
      text: string,
      from: number,
    ): { readonly to: number; readonly stop: Stop | undefined } => {
      for (let at = from; at < text.length; at += 1) {
        const character = text.charAt(at);
        place = passed + at - from;
        if (quote !== '') inText(character);
        else if (comment !== '') inComment(character);
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
    get isMismatched() {
      return isMismatched;
    },
    get depth() {
      return depth;
    },
    get colons() {
      return colons;
    },
    get open() {
      return quote === '' ? undefined : { path: path(), isKey };
    },
    get last() {
      return last;
    },
    literals,
  };
};

export const scanned = (text: string): JsonScan & { readonly end: number | undefined } => {
  const scan = createJsonScan();
  let at = 0;
  let end: number | undefined;
  while (at < text.length && end === undefined) {
    const { to, stop } = scan.feed(text, at);
    at = stop === 'mark' ? text.length : to;
    if (stop === 'closed') end = to;
  }
  return { ...scan, end };
};

/** Commands of LaTeX that a model writes with one backslash, and that JSON takes for an escape and a word. */
const commands =
  'nabla neq newline nmid nolimits nonumber notin nparallel nsubseteq rangle rceil rfloor rho right rightarrow rvert tanh tau tbinom text textbf textit textrm textsf texttt tfrac theta therefore tilde times triangle'.split(
    ' ',
  );

/** Those that are commands only within a formula: elsewhere a line may begin with what follows the escape. */
const commandsInFormulas = 'ne neg not nu rm tan to top'.split(' ');

/** Tells whether the backslash of an escape is itself, by the letters behind it: nobody writes a form feed or a backspace before a word. */
const isLiteralBackslash = (escape: string, isFormula: boolean): boolean => {
  const name = escape.slice(1);
  if (name.length === 1) return false;
  if (/^[bf]/.test(name)) return true;
  return commands.includes(name) || (isFormula && commandsInFormulas.includes(name));
};

/** Tells whether a formula is open behind a character or an escape, in the marks of Markdown and LaTeX: two dollars are one mark. */
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

export const withDoubled = (text: string, places: readonly number[]): string => {
  let from = 0;
  const parts = places.map((place) => {
    const part = text.slice(from, place);
    from = place;
    return part;
  });
  return [...parts, text.slice(from)].join('\\');
};
