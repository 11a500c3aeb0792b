import isEqual from 'fast-deep-equal';

/** The assertions of Node, whose errors show a difference; `undefined` on other platforms. */
const node =
  typeof process === 'undefined' || !('getBuiltinModule' in process)
    ? undefined
    : process.getBuiltinModule('node:assert/strict');

export function ok(value: unknown, message = 'Expected a true value.'): asserts value {
  if (!value) throw new Error(message);
}

export const deepStrictEqual = (actual: unknown, expected: unknown): void => {
  if (node === undefined) ok(isEqual(actual, expected), differs(actual, expected));
  // Called as a function, it would need a type annotation: it asserts a type.
  else Reflect.apply(node.deepStrictEqual, node, [actual, expected]);
};

export const strictEqual = (actual: unknown, expected: unknown, message?: string): void => {
  ok(Object.is(actual, expected), message ?? differs(actual, expected));
};

export const notStrictEqual = (actual: unknown, expected: unknown): void => {
  ok(!Object.is(actual, expected), 'Expected another value.');
};

export const match = (text: string, pattern: RegExp): void => {
  ok(pattern.test(text), `Expected ${String(pattern)}, not '${text}'.`);
};

/** Requires a rejection whose error has these fields. */
export const rejects = async (
  work: Promise<unknown>,
  expected: Readonly<Record<string, unknown>>,
): Promise<void> => {
  const error: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  ok(error instanceof Error, 'Expected a rejection.');
  for (const [name, value] of Object.entries(expected)) {
    deepStrictEqual(Reflect.get(error, name), value);
  }
};

const differs = (actual: unknown, expected: unknown): string =>
  `Expected ${JSON.stringify(expected)}, not ${JSON.stringify(actual)}.`;
