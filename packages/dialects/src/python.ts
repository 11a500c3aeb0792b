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
const escapeDigits: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/**
 * Reads calls with literal arguments, such as `a(x=1)`, `[a(x=1), b()]` or one on each line. Runs nothing: an
 * argument that is neither a literal nor a list, a tuple or a dictionary of literals is a problem.
 */
export const readPython = (text: string): PythonReading => {
  let at = 0;
  let depth = 0;
  let calling: string | undefined;
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
  const need = (mark: string): void => {
    if (!take(mark)) fail(`It needs '${mark}' at ${here()}.`);
  };

  const textLiteral = (): string | undefined => {
    const [, raw, quote = ''] = match(string) ?? [];
    if (raw === undefined) return undefined;
    const parts: string[] = [];
    while (!text.startsWith(quote, at)) {
      const character = text.charAt(at);
      if (character === '' || (character === '\n' && quote.length === 1)) {
        fail('It has a string that is not closed.');
        return undefined;
      }
      at += 1;
      parts.push(character === '\\' && raw === '' ? escaped() : character);
      if (character === '\\' && raw !== '') parts.push(text.charAt(at++));
    }
    at += quote.length;
    return parts.join('');
  };
  const escaped = (): string => {
    const mark = text.charAt(at);
    at += 1;
    const digits = escapeDigits[mark] ?? 0;
    const code = text.slice(at, at + digits);
    if (digits > 0 && code.length === digits && /^[\da-f]+$/i.test(code)) {
      at += digits;
      const point = Number.parseInt(code, 16);
      if (point <= 0x10_ff_ff) return String.fromCodePoint(point);
      fail('It has an escape that is no character.');
    }
    // Python keeps the backslash of an unknown escape.
    return escapes[mark] ?? `\\${mark}`;
  };
  const list = (close: string, read: () => void): void => {
    depth += 1;
    if (depth > maxDepth) fail('Its arguments are nested too deeply.');
    while (problem === undefined && !take(close)) {
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
      need(':');
      entries.push([typeof key === 'string' ? key : JSON.stringify(key), value()]);
    });
    return Object.fromEntries(entries);
  };
  const value = (): unknown => {
    next();
    const from = at;
    const literal = textLiteral();
    if (literal !== undefined) return joined(literal);
    if (take('[')) return items(']');
    if (take('(')) return items(')');
    if (take('{')) return dictionary();
    const [digits] = match(number) ?? [];
    if (digits !== undefined) return Number(digits);
    const [word = ''] = match(identifier) ?? [];
    if (!constants.has(word)) fail(`It has an argument that is not a literal at ${here(from)}.`);
    return constants.get(word);
  };
  /** Python joins neighbouring strings. */
  const joined = (first: string): string => {
    const parts = [first];
    for (;;) {
      next();
      const more = textLiteral();
      if (more === undefined) return parts.join('');
      parts.push(more);
    }
  };
  const call = (): PythonCall => {
    next();
    const [name = ''] = match(identifier) ?? [];
    if (name === '') fail(`It needs the name of a tool at ${here()}.`);
    calling = name;
    need('(');
    const input = new Map<string, unknown>();
    list(')', () => {
      next();
      const [, key] = match(keyword) ?? [];
      if (key === undefined) fail('It has an argument without a name: write name=value.');
      else if (input.has(key)) fail(`It has the argument '${key}' twice.`);
      else input.set(key, value());
    });
    return { name, input: Object.fromEntries(input) };
  };

  const calls: PythonCall[] = [];
  if (take('[')) list(']', () => calls.push(call()));
  else {
    for (let isFirst = true; isFirst || (problem === undefined && next() !== ''); isFirst = false) {
      if (!isFirst && !take(';')) take(',');
      calls.push(call());
    }
  }
  if (next() !== '') fail(`It has text after the calls at ${here()}.`);
  if (calls.length === 0) fail('The list of calls is empty.');
  return problem === undefined
    ? { calls }
    : { problem, ...(calling === undefined ? {} : { name: calling }) };
};
