import type { Span } from './words.js';

/** Finds the stretches within quotes and brackets that are closed on the same line. */
export const shieldsOf = (message: string): readonly Span[] => {
  const shields: Span[] = [];
  let at = 0;
  while (at < message.length) {
    const close = closeOf(message, at);
    if (close !== undefined) shields.push({ start: at, end: close + 1 });
    at = close === undefined ? at + 1 : close + 1;
  }
  return shields;
};

const pairs = new Map([
  ['"', '"'],
  ['“', '”'],
  ['`', '`'],
  ["'", "'"],
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
]);

const longestShield = 1_000;

const closeOf = (message: string, at: number): number | undefined => {
  const open = message.charAt(at);
  const close = pairs.get(open);
  if (close === undefined) return undefined;
  if (open === "'" && !/^(?:|\s|[([,:])$/u.test(message.charAt(at - 1))) return undefined;
  const rest = message.slice(at + 1, at + longestShield);
  const inside = rest.slice(0, endOfLine(rest));
  const length =
    open === close ? inside.search(closers.get(close) ?? close) : balanced(inside, open, close);
  return length < 0 ? undefined : at + 1 + length;
};

const closers = new Map([
  ['"', /"/u],
  ['`', /`/u],
  ["'", /'(?![\p{L}\p{N}])/u],
]);

const endOfLine = (text: string): number => {
  const end = text.indexOf('\n');
  return end < 0 ? text.length : end;
};

const balanced = (text: string, open: string, close: string): number => {
  let depth = 1;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === open) depth += 1;
    if (char === close) depth -= 1;
    if (depth === 0) return at;
  }
  return -1;
};
