/** A call of a function with named arguments, as in Python. */
export interface PythonCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export type PythonReading =
  { readonly calls: readonly PythonCall[] } | { readonly problem: string; readonly name?: string };

const maxDepth = 100;
const space = /(?:\s|#[^\n]*)*/y;
const identifier = /[\p{L}_][\p{L}\p{N}_]*(?:[.-][\p{L}_][\p{L}\p{N}_]*)*/uy;
const keyword = /([\p{L}_][\p{L}\p{N}_]*)\s*=(?!=)/uy;
const number = /-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?/y;
const string = /([rR]?)("""|'''|"|')/y;
const constants = new Map<string, unknown>([
  ['True', true],
  ['true', true],
  ['False', false],
  ['false', false],
  ['None', null],
  ['null', null],
]);
const escapes: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  '0': '\0',
  '\n': '',
  "'": "'",
  '"': '"',
  '\\': '\\',
};
/** The digits after these escapes. */
const codes: Readonly<Record<string, RegExp>> = {
  x: /[\da-f]{2}/iy,
  u: /[\da-f]{4}/iy,
  U: /[\da-f]{8}/iy,
};

/** The text of calls, and the place up to which it is read. */
type Source = ReturnType<typeof createSource>;

const createSource = (text: string) => {
  let at = 0;
  /** Once it is set, the text counts as read, and what the functions return is dropped. */
  let problem: string | undefined;

  const fail = (why: string): void => {
    problem ??= why;
    at = text.length;
  };
  const match = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text) ?? undefined;
    if (found !== undefined) at = pattern.lastIndex;
    return found;
  };
  const next = (): string => {
    match(space);
    return text.charAt(at);
  };
  const take = (mark: string): boolean => {
    if (next() !== mark) return false;
    at += 1;
    return true;
  };
  const here = (from = at): string =>
    from >= text.length ? 'the end' : JSON.stringify(text.slice(from, from + 20));
  return {
    get at() {
      return at;
    },
    get problem() {
      return problem;
    },
    fail,
    match,
    /** The next characters, which are taken. */
    read: (length: number): string => {
      const characters = text.slice(at, at + length);
      at += length;
      return characters;
    },
    startsWith: (mark: string): boolean => text.startsWith(mark, at),
    /** The next character after space and comments, which are taken. */
    next,
    take,
    here,
    need: (mark: string): void => {
      if (!take(mark)) fail(`It needs '${mark}' at ${here()}.`);
    },
  };
};

const readString = (source: Source): string | undefined => {
  const [, raw, quote = ''] = source.match(string) ?? [];
  if (raw === undefined) return undefined;
  const parts: string[] = [];
  while (!source.startsWith(quote)) {
    const character = source.read(1);
    if (character === '' || (character === '\n' && quote.length === 1)) {
      source.fail('It has a string that is not closed.');
      return undefined;
    }
    parts.push(character === '\\' && raw === '' ? readEscape(source) : character);
    if (character === '\\' && raw !== '') parts.push(source.read(1));
  }
  source.read(quote.length);
  return parts.join('');
};

/** The character that an escape stands for, after its backslash. */
const readEscape = (source: Source): string => {
  const mark = source.read(1);
  const digits = codes[mark];
  const [code] = (digits === undefined ? undefined : source.match(digits)) ?? [];
  if (code !== undefined) {
    const point = Number.parseInt(code, 16);
    if (point <= 0x10_ff_ff) return String.fromCodePoint(point);
    source.fail('It has an escape that is no character.');
  }
  // Python keeps the backslash of an unknown escape.
  return escapes[mark] ?? `\\${mark}`;
};

const createValueReader = (source: Source) => {
  const { match, next, take, fail, here } = source;
  let depth = 0;

  const list = (close: string, read: () => void): void => {
    depth += 1;
    if (depth > maxDepth) fail('Its arguments are nested too deeply.');
    while (source.problem === undefined && !take(close)) {
      read();
      if (!take(',') && next() !== close) fail(`It needs ',' or '${close}' at ${here()}.`);
    }
    depth -= 1;
  };
  const items = (close: string): readonly unknown[] => {
    const all: unknown[] = [];
    list(close, () => all.push(value()));
    return all;
  };
  const dictionary = (): unknown => {
    const entries: (readonly [string, unknown])[] = [];
    list('}', () => {
      const key = value();
      source.need(':');
      entries.push([typeof key === 'string' ? key : JSON.stringify(key), value()]);
    });
    return Object.fromEntries(entries);
  };
  /** Python joins neighbouring strings. */
  const strings = (): string | undefined => {
    const parts: string[] = [];
    for (;;) {
      next();
      const part = readString(source);
      if (part === undefined) return parts.length === 0 ? undefined : parts.join('');
      parts.push(part);
    }
  };
  const value = (): unknown => {
    next();
    const from = source.at;
    const literal = strings();
    if (literal !== undefined) return literal;
    if (take('[')) return items(']');
    if (take('(')) return items(')');
    if (take('{')) return dictionary();
    const [digits] = match(number) ?? [];
    if (digits !== undefined) return Number(digits);
    const [word = ''] = match(identifier) ?? [];
    if (!constants.has(word)) fail(`It has an argument that is not a literal at ${here(from)}.`);
    return constants.get(word);
  };
  return { list, value };
};

/**
 * Reads calls with literal arguments, such as `a(x=1)`, `[a(x=1), b()]` or one on each line. Runs nothing: an
 * argument that is neither a literal nor a list, a tuple or a dictionary of literals is a problem.
 */
export const readPython = (text: string): PythonReading => {
  const source = createSource(text);
  const { match, next, take, fail, here } = source;
  const { list, value } = createValueReader(source);
  const calls: PythonCall[] = [];
  let calling: string | undefined;

  const call = (): void => {
    next();
    const [name = ''] = match(identifier) ?? [];
    if (name === '') fail(`It needs the name of a tool at ${here()}.`);
    calling = name;
    source.need('(');
    const input = new Map<string, unknown>();
    list(')', () => {
      next();
      const [, key] = match(keyword) ?? [];
      if (key === undefined) fail('It has an argument without a name: write name=value.');
      else if (input.has(key)) fail(`It has the argument '${key}' twice.`);
      else input.set(key, value());
    });
    calls.push({ name, input: Object.fromEntries(input) });
  };
  if (take('[')) list(']', call);
  else {
    call();
    while (next() !== '') {
      if (!take(';')) take(',');
      call();
    }
  }
  if (next() !== '') fail(`It has text after the calls at ${here()}.`);
  if (calls.length === 0) fail('The list of calls is empty.');
  const { problem } = source;
  return problem === undefined
    ? { calls }
    : { problem, ...(calling === undefined ? {} : { name: calling }) };
};
