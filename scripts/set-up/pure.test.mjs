import { expect, it } from '@jest/globals';
import { transform } from 'esbuild';
import { markPure } from './pure.mjs';

/** What a bundler keeps of a module of which nothing is used. */
const kept = async (source) => {
  const { code } = await transform(markPure('module.ts', source), {
    loader: 'ts',
    treeShaking: true,
    format: 'iife',
  });
  return code.replace(/^\(\(\) => \{\n|\}\)\(\);\n$/g, '').trim();
};

it.each([
  ['a call', "const a = f('x');"],
  ['a call of a method', 'const a = Object.freeze({ b: 1 });'],
  ['a new object', 'const a = new WeakMap<object, string>();'],
  ['a call in a call', 'const a = f({ b: g(1), c() {} }, [h()]);'],
  ['a property of something else', 'const a = { b: c.d };'],
  ['what is spread', 'const a = f({ ...b }), c = [...d];'],
  ['a template', 'const a = `${b} c`;'],
  ['a call of what a call returns', 'const a = f(1)(2);'],
])('bundlers drop %s', async (_, source) => {
  expect(await kept(source)).toBe('');
});

it('they keep what is used, on the lines of the source', () => {
  const marked = markPure('module.ts', 'const a = f(\n  b.c,\n);\nexport const d = () => f(1);\n');
  expect(marked).toBe(
    'const a = /* @__PURE__ */ (() => (f(\n  b.c,\n)))();\nexport const d = () => f(1);\n',
  );
});

it('they keep statements', async () => {
  expect(await kept('f();\nfor (const a of b) a();')).toContain('f();\n');
});

it.each([
  'const a = await f();',
  'const a = () => f();',
  "const a = { b: ['c', 1n, true, null] };",
])('leaves %s alone', (source) => {
  expect(markPure('module.ts', source)).toBe(source);
});
