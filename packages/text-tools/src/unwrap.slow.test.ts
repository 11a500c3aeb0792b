import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { createUnwrapper } from './unwrap.js';

const openings = [
  ...['`', '``', '"', "'", '“', '‘', '«', '„', '*', '**', '***', '_', '__'],
  ...['- ', '* ', '+ ', '• ', '1. ', '2) ', '# ', '### ', '> '],
  ...['- `', '1. ``', '- **`', '**`', '“`', '# **', '<think>I look.</think>\n`', '  \n`'],
];
/** Text that may follow the opening of a call. */
const fillings = ['x y ', '`', '**', '"', '\\"', '{', '\n"', '\n> "', ' ', '.,', "_'"];

const unwrapper = (push: (text: string) => void = () => undefined) =>
  createUnwrapper({
    push,
    mayBeCall: (text) => text.startsWith('{') || (text === '' ? 'more' : false),
    isCall: (text) => text.startsWith('{') && text.endsWith('}'),
    onQuoted: () => undefined,
  });
const inFours = (text: string): readonly string[] => text.match(/[^]{1,4}/g) ?? [];

/** The number of characters that searches of texts are given while `run` runs. */
const searched = (run: () => void): number => {
  let count = 0;
  // `test`, `replace` and `search` of regular expressions call `exec`.
  const exec = Reflect.get(RegExp.prototype, 'exec') as RegExp['exec'];
  jest.spyOn(RegExp.prototype, 'exec').mockImplementation(function (this: RegExp, text) {
    count += text.length;
    return exec.call(this, text);
  });
  for (const name of ['indexOf', 'includes', 'lastIndexOf', 'trim', 'trimStart'] as const) {
    const search = Reflect.get(String.prototype, name) as (...given: unknown[]) => unknown;
    jest.spyOn(String.prototype, name).mockImplementation(function (
      this: string,
      ...given: unknown[]
    ) {
      count += this.length;
      return search.apply(this, given) as never;
    });
  }
  run();
  jest.restoreAllMocks();
  return count;
};

afterEach(() => {
  jest.restoreAllMocks();
});

describe('X1: a call in marks', () => {
  it.each(openings)('X1: after %j is read once, in any pieces', (opening) => {
    for (const filling of fillings) {
      const reply = `${opening}{"a": "${filling.repeat(20_000 / filling.length)}`;
      const pieces = inFours(reply);
      const count = searched(() => {
        const { push } = unwrapper();
        pieces.forEach((piece) => {
          push(piece);
        });
      });
      expect({ filling, isOften: count > 12 * reply.length }).toEqual({ filling, isOften: false });
    }
  });

  it('X1: space before it and between its marks is read once', () => {
    for (const opening of ['', '- ', '1.', '> ', '#']) {
      const reply = `${opening}${' '.repeat(20_000)}`;
      const pieces = inFours(reply);
      const count = searched(() => {
        const { push } = unwrapper();
        pieces.forEach((piece) => {
          push(piece);
        });
      });
      expect({ opening, isOften: count > 12 * reply.length }).toEqual({ opening, isOften: false });
    }
  });

  it.each([
    ['`{}` is it', '`{}` i'],
    ['`{}`.\n\n', undefined],
    ['`{"a":\n"b"}', undefined],
    ['`{"a":\n\n"b"}', '`{"a":\n\n"'],
    ['`{"a":\nnow', '`{"a":\nn'],
    ['**{"a": "**b"}', undefined],
    ['"{"a": "b"}" she', undefined],
    ['- {"a": "b"}\n', undefined],
    ['- {"a": "b"}\n{', '- {"a": "b"}\n{'],
    ['- - {"a": "b"}', undefined],
    ['- 1. {"a": "b"}', undefined],
    ['1) ## **{"a": "b"}**', undefined],
    ['- -1 is', '- -1'],
    ['- <thick', '- <thic'],
    ['> {"a":\n> "b"}', undefined],
    ['> {"a":\n"b"}', '> {"a":\n"'],
  ])('P11: %j passes as %j', (reply, expected) => {
    const passed: string[] = [];
    const { push } = unwrapper((text) => passed.push(text));
    reply.split('').forEach((character) => {
      push(character);
    });
    expect(passed[0]).toBe(expected);
    expect(passed.join('')).toBe(expected === undefined ? '' : reply);
  });
});
