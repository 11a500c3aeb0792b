import { expect, it } from '@jest/globals';
import { pathsIn } from './paths.js';

it.each([
  ['show me package.json.', ['package.json']],
  ['compare ./a.ts with src/b/c.test.ts', ['./a.ts', 'src/b/c.test.ts']],
  ['read /etc/hosts and .gitignore', ['/etc/hosts', '.gitignore']],
  ['Open `README.md`', ['README.md']],
  ["what is README.md's title", ['README.md']],
  ['the readme', ['README.md']],
  ['the licence file', ['LICENSE']],
  ['the file notes', ['notes']],
  ['a file called todo', ['todo']],
  ['the src folder', ['src']],
  ['list the files', ['.']],
  ['what is in src/a/b', ['src/a/b']],
  ['America/Argentina/Buenos_Aires', []],
  ['which file defines it', []],
  ['What is Node.js, e.g. on example.com?', []],
  ['2.5 or 3/4 or and/or', []],
  ['which file formats are there', []],
])('%s', (text, expected) => {
  expect(pathsIn(text).map(({ value }) => value)).toEqual(expected);
});

it('is sure only of what is written as a path', () => {
  expect(pathsIn('a.md')[0]?.telling).toBe(true);
  expect(pathsIn('the readme')[0]).toMatchObject({ telling: true, others: ['README'] });
  expect(pathsIn('the licence')[0]?.telling).toBe(false);
});
